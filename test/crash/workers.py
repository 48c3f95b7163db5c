"""Clients that load the server and remember what it promised.

Each worker owns its items, so it knows what must be there: what was acknowledged, and of the one request that was under
way when the server died either everything or nothing (of a batch: each item whole, old or new). The shared counter is
written by all of them; a watcher reads it, since what a reply has shown must survive too.
"""
import hashlib
import http.client
import json
import random
import threading

TABLE = "crash"
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                     "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64,
}


class Refused(Exception):
    """A reply other than 200: under this load there is no reason for one."""


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def call(self, operation, request):
        """The reply's body. OSError and HTTPException mean that the server has gone."""
        headers = {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self.connection.request("POST", "/", json.dumps(request).encode(), headers)
        reply = self.connection.getresponse()
        data = reply.read()
        if reply.status != 200:
            raise Refused(f"{operation}: {reply.status} {data.decode()}")
        return json.loads(data)

    def close(self):
        self.connection.close()


def payload(name, sequence):
    """Text that belongs to this item and sequence number alone, from 64 bytes to 16 kilobytes."""
    seed = hashlib.sha256(f"{name}/{sequence}".encode()).hexdigest()
    return seed * (1 << (sequence % 9))


def image(name, sequence):
    """A whole item. Mixing parts of two sequence numbers cannot look like either."""
    return {"pk": {"S": name}, "sequence": {"N": str(sequence)}, "again": {"N": str(sequence)},
            "payload": {"S": payload(name, sequence)}}


class Worker:
    """Repeats step() until the server dies. `sent` and `acknowledged` count steps over all rounds."""

    def __init__(self, name, seed):
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self.client = None
        self.error = None
        self.acknowledged = 0
        self.pending = None  # of the request under way: what it would change

    def run(self, port, stopped):
        self.client = Client(port)
        try:
            while not stopped.is_set():
                self.step()
                self.acknowledged += 1
        except (OSError, http.client.HTTPException):
            if not stopped.is_set():
                self.error = "the connection broke before the kill"
        except Refused as refused:
            self.error = str(refused)
        finally:
            self.client.close()

    def write(self, operation, request, change):
        """Sends a write; keep() makes the change part of what is promised once it was acknowledged."""
        self.pending = change
        reply = self.client.call(operation, request)
        self.keep(change)
        self.pending = None
        return reply

    def step(self):
        raise NotImplementedError

    def keep(self, change):
        raise NotImplementedError

    def verify(self, client, items):
        """Compares the items found after the restart with the promises; yields a sentence for each broken one, and
        takes over what was found where both old and new were allowed."""
        raise NotImplementedError


class ItemWorker(Worker):
    """Knows the whole image (or None) of each of its items."""

    def __init__(self, name, seed, count):
        super().__init__(name, seed)
        self.keys = [f"{name}-{number:03}" for number in range(count)]
        self.images = dict.fromkeys(self.keys)
        self.sequence = 0

    def keep(self, change):
        self.images.update(change)

    def next_image(self, key):
        self.sequence += 1
        return image(key, self.sequence)

    def verify(self, client, items):
        pending, self.pending = self.pending or {}, None
        for key in self.keys:
            found = items.get(key)
            if found == self.images[key]:
                continue
            if key in pending and found == pending[key]:
                self.images[key] = found
                continue
            yield (f"{self.name}: {key} is {short(found)}, promised {short(self.images[key])}"
                   + (f", under way {short(pending[key])}" if key in pending else ""))
            self.images[key] = found


def short(item):
    if item is None:
        return "absent"
    return f"sequence {item.get('sequence', {}).get('N')} of {len(json.dumps(item))} characters"


class Putter(ItemWorker):
    """Puts and deletes single items."""

    def step(self):
        key = self.rng.choice(self.keys)
        if self.images[key] and self.rng.random() < 0.25:
            self.write("DeleteItem", {"TableName": TABLE, "Key": {"pk": {"S": key}}}, {key: None})
        else:
            item = self.next_image(key)
            self.write("PutItem", {"TableName": TABLE, "Item": item}, {key: item})


class Batcher(ItemWorker):
    """Writes up to 25 items at once."""

    def step(self):
        change, requests = {}, []
        for key in self.rng.sample(self.keys, self.rng.randint(2, 25)):
            if self.rng.random() < 0.25:
                change[key] = None
                requests.append({"DeleteRequest": {"Key": {"pk": {"S": key}}}})
            else:
                change[key] = self.next_image(key)
                requests.append({"PutRequest": {"Item": change[key]}})
        reply = self.write("BatchWriteItem", {"RequestItems": {TABLE: requests}}, change)
        if reply["UnprocessedItems"]:
            raise Refused("BatchWriteItem left items over")


class Transactor(ItemWorker):
    """Writes several items in one transaction: after a kill all of them are new, or none is."""

    def step(self):
        change, actions = {}, []
        for key in self.rng.sample(self.keys, self.rng.randint(2, 10)):
            if self.images[key] and self.rng.random() < 0.25:
                change[key] = None
                actions.append({"Delete": {"TableName": TABLE, "Key": {"pk": {"S": key}}}})
            else:
                change[key] = self.next_image(key)
                actions.append({"Put": {"TableName": TABLE, "Item": change[key]}})
        self.write("TransactWriteItems", {"TransactItems": actions}, change)

    def verify(self, client, items):
        pending = self.pending or {}
        applied = [items.get(key) == image for key, image in pending.items()]
        if any(applied) and not all(applied):
            yield f"{self.name}: {sum(applied)} of {len(applied)} writes of a transaction were kept"
        yield from super().verify(client, items)


class Versioner(ItemWorker):
    """Replaces an item on condition of its version: a lost write would make the next condition fail."""

    def step(self):
        key = self.rng.choice(self.keys)
        item, old = self.next_image(key), self.images[key]
        request = {"TableName": TABLE, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        if old:
            request["ConditionExpression"] = "#s = :old"
            request["ExpressionAttributeNames"] = {"#s": "sequence"}
            request["ExpressionAttributeValues"] = {":old": old["sequence"]}
        self.write("PutItem", request, {key: item})


class Counter(Worker):
    """Adds to a counter of its own, to a second one in the same item, and to the shared one."""

    SHARED = "shared-counter"

    def __init__(self, name, seed):
        super().__init__(name, seed)
        self.key = f"{name}-counter"
        self.own = self.shared = 0
        self.own_pending = self.shared_pending = 0

    def add(self, key):
        request = {"TableName": TABLE, "Key": {"pk": {"S": key}}, "ReturnValues": "ALL_NEW",
                   "UpdateExpression": "ADD n :one SET m = if_not_exists(m, :zero) + :one",
                   "ExpressionAttributeValues": {":one": {"N": "1"}, ":zero": {"N": "0"}}}
        return self.client.call("UpdateItem", request)["Attributes"]

    def step(self):
        self.own_pending = 1
        told = self.add(self.key)
        self.own += 1
        self.own_pending = 0
        if told["n"] != {"N": str(self.own)}:
            raise Refused(f"{self.key} is {told['n']} after {self.own} additions")
        self.shared_pending = 1
        self.add(self.SHARED)
        self.shared += 1
        self.shared_pending = 0

    def verify(self, client, items):
        found = items.get(self.key, {"n": {"N": "0"}, "m": {"N": "0"}})
        number = int(found["n"]["N"])
        if found["n"] != found["m"]:
            yield f"{self.name}: half an update: {found}"
        if not self.own <= number <= self.own + self.own_pending:
            yield f"{self.name}: counter is {number}, promised {self.own}, under way {self.own_pending}"
        self.own, self.own_pending = number, 0


class Watcher(Worker):
    """Reads the shared counter: it must never go back, not even over a crash."""

    def __init__(self, name, seed):
        super().__init__(name, seed)
        self.seen = 0

    def step(self):
        item = self.client.call("GetItem", {"TableName": TABLE, "Key": {"pk": {"S": Counter.SHARED}}}).get("Item")
        number = int(item["n"]["N"]) if item else 0
        if number < self.seen:
            raise Refused(f"the shared counter went back from {self.seen} to {number}")
        self.seen = number

    def verify(self, client, items):
        number = int(items.get(Counter.SHARED, {"n": {"N": "0"}})["n"]["N"])
        if number < self.seen:
            yield f"{self.name}: a reader saw {self.seen}, but the counter is {number}"
        self.seen = number


class TableMaker(Worker):
    """Creates and deletes tables with an item in each."""

    def __init__(self, name, seed):
        super().__init__(name, seed)
        self.names = [f"{name}-{number}" for number in range(4)]
        self.exists = dict.fromkeys(self.names, False)

    def keep(self, change):
        self.exists.update(change)

    def step(self):
        name = self.rng.choice(self.names)
        if self.exists[name]:
            self.write("DeleteTable", {"TableName": name}, {name: False})
            return
        self.write("CreateTable", table_request(name), {name: True})

    def verify(self, client, items):
        pending, self.pending = self.pending or {}, None
        names = client.call("ListTables", {})["TableNames"]
        for name in self.names:
            found = name in names
            if found != self.exists[name] and pending.get(name) != found:
                yield f"{self.name}: table {name} {'is there' if found else 'is missing'}"
            self.exists[name] = found


def table_request(name):
    """With two indexes and a stream, so that `quipu check` can compare what follows from a write with the items."""
    def index(index_name, attribute, projection):
        return {"IndexName": index_name, "KeySchema": [{"AttributeName": attribute, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": projection}}

    types = {"pk": "S", "sequence": "N", "n": "N"}
    return {"TableName": name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [index("by-sequence", "sequence", "ALL"), index("by-n", "n", "KEYS_ONLY")],
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


def all_items(client):
    """Every item of the table by its key."""
    items, request = {}, {"TableName": TABLE, "ConsistentRead": True}
    while True:
        page = client.call("Scan", request)
        for item in page["Items"]:
            key = item["pk"]["S"]
            assert key not in items, f"{key} was scanned twice"
            items[key] = item
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def make_workers(seed):
    return [Putter("putter-a", seed, 150), Putter("putter-b", seed, 20), Batcher("batcher-a", seed, 60),
            Batcher("batcher-b", seed, 200), Versioner("versioner", seed, 10),
            Transactor("transactor", seed, 40), Counter("counter-a", seed), Counter("counter-b", seed),
            Watcher("watcher", seed), TableMaker("tables", seed)]


def load(workers, port, seconds, kill):
    """Runs all workers at once; calls kill() after so many seconds and waits until all have noticed."""
    stopped = threading.Event()
    threads = [threading.Thread(target=w.run, args=(port, stopped), daemon=True) for w in workers]
    for thread in threads:
        thread.start()
    stopped.wait(seconds)
    stopped.set()
    kill()
    for thread in threads:
        thread.join(30)
