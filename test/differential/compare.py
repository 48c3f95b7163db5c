"""Sends requests to one server, and says how two replies differ.

What the service leaves open is made equal first: the order of sets, of a scan's items and of a batch's items; times,
ids and names of places in descriptions of tables. The service brings numbers into one form, DynamoDB Local often
returns them as they were sent, so its numbers (never Quipu's) are brought into that form here."""
import decimal
import http.client
import json
import re
import urllib.parse

# In descriptions of tables: differs from run to run or by where the server says it stands.
VOLATILE = {"CreationDateTime", "TableId", "TableArn", "IndexArn", "LatestStreamArn", "LatestStreamLabel",
            "LastIncreaseDateTime", "LastDecreaseDateTime", "LastUpdateToPayPerRequestDateTime"}
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                     "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64,
}


class Reply:
    def __init__(self, status, body):
        self.status, self.body = status, body

    @property
    def ok(self):
        return self.status == 200

    @property
    def type(self):
        return str(self.body.get("__type", "")).split("#")[-1] if isinstance(self.body, dict) else ""

    @property
    def message(self):
        return self.body.get("message", self.body.get("Message", "")) if isinstance(self.body, dict) else ""

    @property
    def outcome(self):
        """One line: `ok`, or status, exception and message."""
        return "ok" if self.ok else f"{self.status} {self.type}: {self.message}"


class Side:
    """One of the two servers."""

    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url).netloc
        self.connection = None

    def send(self, operation, body, service="DynamoDB"):
        """The reply to these bytes. Opens the connection again once, since a server may close an idle one."""
        headers = {**HEADERS, "X-Amz-Target": f"{service}_20120810.{operation}"}
        for _ in range(2):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection(self.address, timeout=30)
                self.connection.request("POST", "/", body, headers)
                reply = self.connection.getresponse()
                data = reply.read()
                break
            except (http.client.HTTPException, OSError) as error:
                self.connection = None
                gone = error
        else:
            return Reply(0, {"__type": "NoReply", "message": repr(gone)})
        try:
            return Reply(reply.status, json.loads(data))
        except ValueError:
            return Reply(reply.status, data.decode("latin-1"))

    def call(self, operation, request):
        """A Scan, or a Query of an index, is followed to its end: where its pages break is the server's own affair."""
        in_parts = isinstance(request, dict) and (
            operation == "Scan" and ("Limit" in request or "TotalSegments" in request)
            or operation == "Query" and "IndexName" in request and "Limit" in request)
        if in_parts and "ExclusiveStartKey" not in request:
            return self.all_pages(operation, request)
        return self.send(operation, json.dumps(request).encode())

    def stream_call(self, operation, request):
        reply = self.send(operation, json.dumps(request).encode(), "DynamoDBStreams")
        if not reply.ok:
            raise SystemExit(f"{operation} {request}: {reply.outcome}")
        return reply

    def all_pages(self, operation, request):
        """The items of all pages and segments in one reply; the refusal when the first of them is one."""
        first = self.send(operation, json.dumps(request).encode())
        if not first.ok:
            return first
        total = {"Count": 0, "ScannedCount": 0}
        if "Items" in first.body:
            total["Items"] = []
        segments = request.get("TotalSegments")
        for segment in range(segments) if segments else [None]:
            page = dict(request) if segment is None else {**request, "Segment": segment}
            while page is not None:
                reply = self.send(operation, json.dumps(page).encode())
                if not reply.ok:
                    return reply
                for member in total:
                    total[member] += reply.body.get(member, [])
                last = reply.body.get("LastEvaluatedKey")
                page = {**page, "ExclusiveStartKey": last} if last else None
        return Reply(200, total)


def canonical(node):
    return json.dumps(node, sort_keys=True)


def plain_number(text):
    """The service's form: no exponent, no zeros at the ends."""
    text = format(decimal.Decimal(text), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def as_it_is(text):
    return text


def normal(node, number=as_it_is):
    """Sets sorted, volatile members left out, numbers passed through `number`, everywhere in the reply."""
    if isinstance(node, list):
        return [normal(n, number) for n in node]
    if not isinstance(node, dict):
        return node
    result = {}
    for name, value in node.items():
        if name in VOLATILE and not isinstance(value, dict):
            continue
        if name == "N" and isinstance(value, str):
            result[name] = number(value)
        elif name in ("SS", "NS", "BS") and isinstance(value, list):
            result[name] = sorted(map(number, value) if name == "NS" else value)
        else:
            result[name] = normal(value, number)
    return result


# The attributes that order the entries of an index, by its name; others of the same index have no order.
INDEX_ORDERS = {"global": ["r"], "local": ["r"], "keys": []}


def without_order(operation, request, body, number):
    """The reply with sorted items where the service promises no order."""
    body = normal(body, number)
    if operation == "Scan" and "Items" in body:
        body["Items"].sort(key=canonical)
    if operation == "ExecuteStatement" and not re.search(r'rows" WHERE pk = [^O]*$', str(request["Statement"])):
        body.get("Items", []).sort(key=canonical)
    if operation == "Query" and "IndexName" in request:
        without_order_of_equals(request, body)
    if operation == "BatchGetItem":
        for items in body.get("Responses", {}).values():
            items.sort(key=canonical)
    for name in ("AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for description in (body.get("TableDescription", {}), body.get("Table", {})):
            description.get(name, []).sort(key=lambda element: element.get("IndexName") or element["AttributeName"])
    if isinstance(body.get("ConsumedCapacity"), list):
        body["ConsumedCapacity"].sort(key=lambda table: table["TableName"])
    return body


def without_order_of_equals(request, body):
    """Items with the same index keys have no order of their own, so a start key among them has no meaning either."""
    if "ExclusiveStartKey" in request:
        for name in ("Items", "Count", "ScannedCount", "LastEvaluatedKey", "ConsumedCapacity"):
            body.pop(name, None)
        return
    items, groups = body.get("Items", []), []
    names = INDEX_ORDERS.get(request["IndexName"], [])
    if not all(name in item for item in items for name in names):
        names = []  # a projection has left them out
    for item in items:
        if groups and all(groups[-1][0][name] == item[name] for name in names):
            groups[-1].append(item)
        else:
            groups.append([item])
    body["Items"] = [item for group in groups for item in sorted(group, key=canonical)]


def differing_members(ours, theirs, path=""):
    """The places at which two bodies differ, as paths."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        places = []
        for name in sorted(set(ours) | set(theirs)):
            if name not in ours or name not in theirs:
                places.append(f"{path}.{name}")
            else:
                places += differing_members(ours[name], theirs[name], f"{path}.{name}")
        return places
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [place for n, pair in enumerate(zip(ours, theirs))
                for place in differing_members(*pair, f"{path}[{n}]")]
    return [] if ours == theirs else [path]


class Difference:
    def __init__(self, operation, request, ours, theirs, places):
        self.operation, self.request, self.ours, self.theirs, self.places = operation, request, ours, theirs, places


def compare(operation, request, ours, theirs):
    """None when the replies say the same."""
    if not (ours.ok and theirs.ok):
        same = ours.outcome == theirs.outcome and normal(item_of(ours)) == normal(item_of(theirs), plain_number)
        return None if same else Difference(operation, request, ours, theirs, [])
    places = differing_members(without_order(operation, request, ours.body, as_it_is),
                               without_order(operation, request, theirs.body, plain_number))
    return Difference(operation, request, ours, theirs, places) if places else None


def item_of(reply):
    """What ReturnValuesOnConditionCheckFailure brings: an item, or one for each action of a transaction."""
    if not isinstance(reply.body, dict):
        return None
    return [part.get("Item") for part in [reply.body, *reply.body.get("CancellationReasons", [])]]


def updates_of(operation, request):
    """The updates in a request that succeeded."""
    if operation == "UpdateItem":
        return [request]
    if operation == "TransactWriteItems":
        return [action["Update"] for action in request["TransactItems"] if "Update" in action]
    return []


def only_clears(request):
    """An update of nothing but REMOVE and DELETE. On a missing item the service makes none of it, Local makes one."""
    updates = request.get("AttributeUpdates")
    if isinstance(updates, dict) and updates:
        return all(isinstance(update, dict) and update.get("Action") == "DELETE" for update in updates.values())
    expression = request.get("UpdateExpression")
    return isinstance(expression, str) and not re.search(r"\b(SET|ADD)\b", expression, re.I)
