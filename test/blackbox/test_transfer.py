"""Exports and imports: buckets are folders, files are those that the service writes and reads."""
import base64
import gzip
import hashlib
import json
import os
import re
import struct
import time

import pytest
from botocore.exceptions import ClientError

from cli import output, quipu
from support.fixtures import boto_client, create_table
from support.process import Quipu, S3rver, free_port
from support.wire import Connection

WAIT_SECONDS = 180


class Place:
    """A server and its folder of buckets."""

    def __init__(self, *arguments):
        self.server = Quipu("--no-functions", *arguments)
        self.buckets = os.path.join(self.server.folder, "data", "s3")
        self.client = boto_client(self.server.url)
        os.makedirs(os.path.join(self.buckets, "photos"))

    def crash(self, *arguments):
        """The server is killed, and another one goes on with its data."""
        killed = self.server
        killed.kill()
        self.server = Quipu("--no-functions", "--data", os.path.join(killed.folder, "data"), *arguments)
        self.server.folder, killed.folder = killed.folder, self.server.folder
        killed.close()
        self.client = boto_client(self.server.url)

    def put(self, key, content, bucket="photos"):
        path = os.path.join(self.buckets, bucket, key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())


@pytest.fixture(scope="module")
def place():
    place = Place()
    yield place
    place.server.close()


def wait_for(describe, member, status):
    """Asks until the job is no longer under way."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        description = describe()
        if description[status] not in ("IN_PROGRESS", "CANCELLING"):
            return description
        assert time.monotonic() < until, f"{member} is still {description[status]}"
        time.sleep(0.02)


def import_request(name, prefix="", format="DYNAMODB_JSON", bucket="photos", keys=(("pk", "S", "HASH"),), **more):
    creation = {"TableName": name, "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t, _ in keys],
                "KeySchema": [{"AttributeName": n, "KeyType": k} for n, _, k in keys]}
    creation.update(more.pop("creation", {}))
    return {"S3BucketSource": {"S3Bucket": bucket, "S3KeyPrefix": prefix}, "InputFormat": format,
            "TableCreationParameters": creation, **more}


def run_import(client, *arguments, **more):
    begun = client.import_table(**import_request(*arguments, **more))["ImportTableDescription"]
    assert begun["ImportStatus"] == "IN_PROGRESS"
    arn = begun["ImportArn"]
    return wait_for(lambda: client.describe_import(ImportArn=arn)["ImportTableDescription"], arn, "ImportStatus")


def items_of(client, name):
    pages = client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
    return in_order(item for page in pages for item in page["Items"])


def in_order(items):
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def lines(*items):
    return "".join(json.dumps({"Item": item}) + "\n" for item in items)


def zstd_frame(content):
    """A frame of Zstandard with one block that is not packed."""
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, len(content)) + struct.pack("<I", len(content) << 3 | 1)[:3] + content


ANN = {"pk": {"S": "ann"}, "n": {"N": "1.5"}, "m": {"M": {"l": {"L": [{"NULL": True}, {"BOOL": False}]}}}}
BOB = {"pk": {"S": "bob"}, "ss": {"SS": ["x", "y"]}}


# ---- ImportTable ----

@pytest.mark.parametrize("compression, pack", [("NONE", lambda b: b), ("GZIP", gzip.compress), ("ZSTD", zstd_frame)])
def test_import_of_json_lines(place, unused_name, compression, pack):
    place.put(f"{unused_name}/one", pack(lines(ANN).encode()))
    place.put(f"{unused_name}/two/three", pack(lines(BOB).encode()))
    ended = run_import(place.client, unused_name, unused_name, InputCompressionType=compression)
    assert ended["ImportStatus"] == "COMPLETED", ended
    assert (ended["ProcessedItemCount"], ended["ImportedItemCount"], ended["ErrorCount"]) == (2, 2, 0)
    assert ended["ProcessedSizeBytes"] == len(pack(lines(ANN).encode())) + len(pack(lines(BOB).encode()))
    assert ended["InputCompressionType"] == compression and ended["EndTime"] >= ended["StartTime"]
    assert items_of(place.client, unused_name) == in_order([ANN, BOB])
    description = place.client.describe_table(TableName=unused_name)["Table"]
    assert (description["TableStatus"], description["TableId"]) == ("ACTIVE", ended["TableId"])


def test_import_of_ion(place, unused_name):
    place.put(f"{unused_name}.ion", '$ion_1_0 {Item:{pk:"ann",n:1.5,m:{l:[null,false]}}}\n'
                                    '{Item:{pk:"bob",ss:$dynamodb_SS::["y","x"]}}')
    assert run_import(place.client, unused_name, unused_name, "ION")["ImportStatus"] == "COMPLETED"
    assert items_of(place.client, unused_name) == in_order([ANN, BOB])


def test_import_of_csv(place, unused_name):
    keys = (("pk", "S", "HASH"), ("sk", "N", "RANGE"))
    place.put(f"{unused_name}/a.csv", 'pk,sk,note\r\nann,5,"a, ""b"""\r\nbob,-1.50,\n')
    assert run_import(place.client, unused_name, f"{unused_name}/a", "CSV", keys=keys)["ImportStatus"] == "COMPLETED"
    assert items_of(place.client, unused_name) == in_order([
        {"pk": {"S": "ann"}, "sk": {"N": "5"}, "note": {"S": 'a, "b"'}},
        {"pk": {"S": "bob"}, "sk": {"N": "-1.5"}, "note": {"S": ""}}])
    place.put(f"{unused_name}/b.csv", "ann;5\n")
    named = f"{unused_name}-named"
    options = {"Csv": {"Delimiter": ";", "HeaderList": ["pk", "sk"]}}
    ended = run_import(place.client, named, f"{unused_name}/b", "CSV", keys=keys, InputFormatOptions=options)
    assert (ended["ImportStatus"], ended["InputFormatOptions"]) == ("COMPLETED", options)
    assert items_of(place.client, named) == [{"pk": {"S": "ann"}, "sk": {"N": "5"}}]


def test_import_makes_indexes(place, unused_name):
    place.put(unused_name, lines(ANN, BOB))
    index = {"IndexName": "by-n", "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
             "Projection": {"ProjectionType": "ALL"}}
    definitions = [{"AttributeName": "n", "AttributeType": "N"}, {"AttributeName": "pk", "AttributeType": "S"}]
    ended = run_import(place.client, unused_name, unused_name,
                       creation={"GlobalSecondaryIndexes": [index], "AttributeDefinitions": definitions})
    assert ended["ImportStatus"] == "COMPLETED", ended
    assert place.client.query(TableName=unused_name, IndexName="by-n", KeyConditionExpression="n = :n",
                              ExpressionAttributeValues={":n": {"N": "1.5"}})["Items"] == [ANN]


def test_import_with_bad_items_keeps_the_good_ones(place, unused_name):
    """As on the service: FAILED, and yet the table is of use. The last of two items with the same key stays."""
    again = {"pk": {"S": "bob"}, "n": {"N": "2"}}
    place.put(f"{unused_name}/1", lines(ANN, {"other": {"S": "x"}}, BOB, {"pk": {"N": "1"}}, again))
    place.put(f"{unused_name}/2", lines({"pk": {"S": "c"}}) + "{no json\n" + lines({"pk": {"S": "d"}}))
    ended = run_import(place.client, unused_name, unused_name)
    assert (ended["ImportStatus"], ended["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert ended["FailureMessage"].startswith(
        "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs")
    assert ended["FailureMessage"].endswith("/1, item 2: One or more parameter values were invalid: Missing the key pk "
                                            "in the item")
    assert (ended["ProcessedItemCount"], ended["ImportedItemCount"], ended["ErrorCount"]) == (7, 4, 3)
    assert items_of(place.client, unused_name) == in_order([ANN, again, {"pk": {"S": "c"}}])


def test_import_of_what_is_packed_otherwise(place, unused_name):
    place.put(unused_name, lines(ANN))
    ended = run_import(place.client, unused_name, unused_name, InputCompressionType="GZIP")
    assert (ended["ImportStatus"], ended["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert items_of(place.client, unused_name) == []


def test_import_of_nothing_is_an_empty_table(place, unused_name):
    assert run_import(place.client, unused_name, "no-such-prefix/")["ImportStatus"] == "COMPLETED"
    assert items_of(place.client, unused_name) == []


def test_import_from_a_bucket_that_is_not_there(place, unused_name):
    os.makedirs(os.path.join(place.server.folder, "outside"), exist_ok=True)
    ended = run_import(place.client, unused_name, bucket="nowhere")
    assert (ended["ImportStatus"], ended["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert ended["FailureMessage"].startswith("The specified bucket does not exist")
    with pytest.raises(ClientError) as caught:
        place.client.describe_table(TableName=unused_name)
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_imports_never_leave_their_bucket(place, unused_name):
    with open(os.path.join(place.server.folder, "secret"), "w") as file:
        file.write(lines(ANN))
    os.symlink(place.server.folder, os.path.join(place.buckets, "photos", f"{unused_name}-link"))
    for number, prefix in enumerate(["../../../secret", f"{unused_name}-link/secret", "/", "..", "\0"]):
        ended = run_import(place.client, f"{unused_name}-{number}", prefix)
        assert (ended["ImportStatus"], ended["ProcessedItemCount"]) == ("COMPLETED", 0), prefix
    for bucket in ["..", "../data", "photos/..", "-x"]:
        with pytest.raises(ClientError) as caught:
            place.client.import_table(**import_request(unused_name, bucket=bucket))
        assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_import_is_begun_once_for_a_token(place, unused_name):
    place.put(unused_name, lines(ANN))
    request = import_request(unused_name, unused_name, ClientToken=f"token-{unused_name}")
    first = place.client.import_table(**request)["ImportTableDescription"]
    again = place.client.import_table(**request)["ImportTableDescription"]
    assert again["ImportArn"] == first["ImportArn"] and again["ClientToken"] == f"token-{unused_name}"
    request["InputFormat"] = "ION"
    with pytest.raises(ClientError) as caught:
        place.client.import_table(**request)
    assert caught.value.response["Error"] == {
        "Code": "ImportConflictException",
        "Message": "Import conflict: Duplicate request detected with conflicting parameters"}


@pytest.mark.parametrize("change, code, message", [
    ({"InputFormatOptions": {"Csv": {}}}, "ValidationException",
     "Invalid Request: Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON."),
    ({"creation": {"BillingMode": "PROVISIONED"}}, "ValidationException",
     "One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when "
     "BillingMode is PROVISIONED"),
    ({"creation": {"TableName": "taken"}}, "ResourceInUseException", "Table already exists: taken"),
])
def test_imports_that_are_refused(place, unused_name, change, code, message):
    if "taken" not in place.client.list_tables()["TableNames"]:
        create_table(place.client, "taken")
    with pytest.raises(ClientError) as caught:
        place.client.import_table(**import_request(unused_name, **change))
    assert caught.value.response["Error"] == {"Code": code, "Message": message}


def test_imports_are_listed_newest_first(place, unused_name):
    arns = []
    for number in range(3):
        arns.append(run_import(place.client, f"{unused_name}-{number}", "nothing/")["ImportArn"])
    pages, token = [], {}
    while len(pages) < 3:
        page = place.client.list_imports(PageSize=1, **token)
        summary, = page["ImportSummaryList"]
        pages.append(summary["ImportArn"])
        assert summary["ImportStatus"] == "COMPLETED" and summary["S3BucketSource"]["S3Bucket"] == "photos"
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else {}
    assert pages == arns[::-1]
    table = f"arn:aws:dynamodb:us-east-1:000000000000:table/{unused_name}-1"
    only, = place.client.list_imports(TableArn=table)["ImportSummaryList"]
    assert only["ImportArn"] == arns[1]
    place.client.delete_table(TableName=f"{unused_name}-1")
    assert len(place.client.list_imports(TableArn=table)["ImportSummaryList"]) == 1
    for call, error, message in [
            (lambda: place.client.describe_import(ImportArn="x" * 40), "ValidationException", "Invalid Import ARN"),
            (lambda: place.client.describe_import(ImportArn=f"{table}/import/01000000000000-00000000"),
             "ImportNotFoundException", f"Import not found: {table}/import/01000000000000-00000000"),
            (lambda: place.client.list_imports(NextToken="ff"), "ValidationException",
             "Invalid Request: Provided nextToken is invalid: ff")]:
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"] == {"Code": error, "Message": message}


def test_notes_of_jobs_are_no_table(place, unused_name):
    run_import(place.client, unused_name, "nothing/")
    assert not [name for name in place.client.list_tables()["TableNames"] if name.startswith("$")]
    with pytest.raises(ClientError) as caught:
        place.client.scan(TableName="$notes")
    assert caught.value.response["Error"]["Code"] == "ValidationException"


# ---- ExportTableToPointInTime ----

ALL_TYPES = {"pk": {"S": 'a "b" \\ \n'}, "n": {"N": "-1.5"}, "whole": {"N": "103"}, "b": {"B": b"\x00\xff"},
             "yes": {"BOOL": True}, "none": {"NULL": True}, "l": {"L": [{"S": ""}, {"L": []}]},
             "m": {"M": {"it's": {"N": "1"}}},
             "ss": {"SS": ["x", "y"]}, "ns": {"NS": ["1", "2.5"]}, "bs": {"BS": [b"\x01", b"\x02"]}, "null": {"S": "x"},
             "nested": {"M": {"$10": {"L": [{"M": {}}]}}}}


def arn_of(name):
    return f"arn:aws:dynamodb:us-east-1:000000000000:table/{name}"


def make_recoverable(client, name, *put, items=(), **more):
    create_table(client, name, **more)
    client.update_continuous_backups(TableName=name,
                                     PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    for item in (*put, *items):
        client.put_item(TableName=name, Item=item)


def wait_export(client, arn):
    return wait_for(lambda: client.describe_export(ExportArn=arn)["ExportDescription"], arn, "ExportStatus")


def run_export(client, name, **more):
    request = {"TableArn": arn_of(name), "S3Bucket": "photos", **more}
    begun = client.export_table_to_point_in_time(**request)["ExportDescription"]
    assert begun["ExportStatus"] == "IN_PROGRESS" and "EndTime" not in begun and "ItemCount" not in begun
    return wait_export(client, begun["ExportArn"])


def read_key(place, key, bucket="photos"):
    with open(os.path.join(place.buckets, bucket, key), "rb") as file:
        return file.read()


def md5_of(content):
    return base64.b64encode(hashlib.md5(content).digest()).decode()


@pytest.mark.parametrize("form, suffix", [("DYNAMODB_JSON", "json"), ("ION", "ion")])
def test_an_export_can_be_imported(place, unused_name, form, suffix):
    make_recoverable(place.client, unused_name, ALL_TYPES, ANN, BOB)
    ended = run_export(place.client, unused_name, ExportFormat=form, S3Prefix="out/")
    assert (ended["ExportStatus"], ended["ItemCount"], ended["ExportFormat"]) == ("COMPLETED", 3, form), ended
    data = ended["ExportManifest"].replace("manifest-summary.json", "data/")
    copy = f"{unused_name}-copy"
    imported = run_import(place.client, copy, data, form, InputCompressionType="GZIP")
    assert (imported["ImportStatus"], imported["ImportedItemCount"]) == ("COMPLETED", 3), imported
    assert str(items_of_bytes(place.client, copy)) == str(items_of_bytes(place.client, unused_name))


def items_of_bytes(client, name):
    return sorted(client.scan(TableName=name)["Items"], key=str)


def test_the_files_of_an_export(place, unused_name):
    make_recoverable(place.client, unused_name, ANN, BOB)
    ended = run_export(place.client, unused_name, S3Prefix="some/where", S3SseAlgorithm="AES256")
    identity = ended["ExportArn"].rsplit("/", 1)[1]
    folder = f"some/where/AWSDynamoDB/{identity}"
    assert re.fullmatch(r"0\d{13}-[0-9a-f]{8}", identity)
    assert ended["ExportManifest"] == f"{folder}/manifest-summary.json"
    names = sorted(os.listdir(os.path.join(place.buckets, "photos", folder)))
    assert names == ["_started", "data", "manifest-files.json", "manifest-files.md5", "manifest-summary.json",
                     "manifest-summary.md5"]
    files = read_key(place, f"{folder}/manifest-files.json")
    summary = read_key(place, f"{folder}/manifest-summary.json")
    assert read_key(place, f"{folder}/manifest-files.md5").decode() == md5_of(files)
    assert read_key(place, f"{folder}/manifest-summary.md5").decode() == md5_of(summary)
    told = json.loads(summary)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told.pop("startTime")) and told.pop("endTime")
    assert told.pop("exportTime") and told.pop("billedSizeBytes") == ended["BilledSizeBytes"] > 0
    assert told == {
        "version": "2020-06-30", "exportArn": ended["ExportArn"], "tableArn": arn_of(unused_name),
        "tableId": ended["TableId"], "s3Bucket": "photos", "s3Prefix": "some/where", "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None, "manifestFilesS3Key": f"{folder}/manifest-files.json", "itemCount": 2,
        "outputFormat": "DYNAMODB_JSON"}
    line, = [json.loads(line) for line in files.decode().splitlines()]
    data = read_key(place, line["dataFileS3Key"])
    assert re.fullmatch(rf"{folder}/data/[a-z2-7]{{26}}\.json\.gz", line["dataFileS3Key"])
    assert (line["itemCount"], line["md5Checksum"]) == (2, md5_of(data)) and line["etag"].endswith("-1")
    found = [json.loads(line) for line in gzip.decompress(data).decode().splitlines()]
    assert in_order(found) == in_order([{"Item": ANN}, {"Item": BOB}])


def test_an_export_of_nothing(place, unused_name):
    make_recoverable(place.client, unused_name)
    ended = run_export(place.client, unused_name)
    assert (ended["ExportStatus"], ended["ItemCount"]) == ("COMPLETED", 0)


def test_an_export_has_all_from_before_its_reply_and_nothing_behind(place, unused_name):
    """Writers go on all the time; what is written behind the reply is not in it."""
    make_recoverable(place.client, unused_name)
    table = {"TableName": unused_name}
    for number in range(15):
        place.client.put_item(**table, Item={"pk": {"S": f"before-{number}"}})
        begun = place.client.export_table_to_point_in_time(TableArn=arn_of(unused_name), S3Bucket="photos")
        place.client.put_item(**table, Item={"pk": {"S": f"behind-{number}"}})
        place.client.delete_item(**table, Key={"pk": {"S": f"before-{number}"}})
        ended = wait_export(place.client, begun["ExportDescription"]["ExportArn"])
        keys = {record["Item"]["pk"]["S"] for record in exported(place, ended)}
        assert f"before-{number}" in keys and f"behind-{number}" not in keys
        assert keys == {f"before-{number}"} | {f"behind-{before}" for before in range(number)}


def exported(place, ended):
    """The records of an export that has ended."""
    assert ended["ExportStatus"] == "COMPLETED", ended
    files = read_key(place, ended["ExportManifest"].replace("-summary", "-files")).decode().splitlines()
    data = b"".join(gzip.decompress(read_key(place, json.loads(line)["dataFileS3Key"])) for line in files)
    found = [json.loads(line) for line in data.decode().splitlines()]
    assert len(found) == ended["ItemCount"] == sum(json.loads(line)["itemCount"] for line in files)
    return found


def start_export(place, name, **more):
    """What older SDKs do not know goes over the wire."""
    reply = call(place, "ExportTableToPointInTime", {"TableArn": arn_of(name), "S3Bucket": "photos", **more})
    assert reply.status == 200, (reply.type, reply.message)
    return reply.json["ExportDescription"]


@pytest.mark.parametrize("filter, wanted", [
    ({"FilterExpression": "n > :n"}, [{"pk": {"S": "a"}, "sk": {"N": "2"}, "n": {"N": "20"}},
                                      {"pk": {"S": "b"}, "sk": {"N": "1"}, "n": {"N": "30"}}]),
    ({"KeyConditionExpression": "pk = :p AND sk < :two"}, [{"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"N": "10"}}]),
    ({"KeyConditionExpression": "pk = :p", "FilterExpression": "n > :n", "ProjectionExpression": "#n, elsewhere",
      "ExpressionAttributeNames": {"#n": "n"}}, [{"n": {"N": "20"}}]),
    ({"KeyConditionExpression": "pk = :p AND sk BETWEEN :two AND :n"}, [{"pk": {"S": "a"}, "sk": {"N": "2"},
                                                                         "n": {"N": "20"}}]),
])
def test_an_export_through_a_filter(place, unused_name, filter, wanted):
    make_recoverable(place.client, unused_name, range_type="N", items=[
        {"pk": {"S": p}, "sk": {"N": s}, "n": {"N": n}} for p, s, n in [("a", "1", "10"), ("a", "2", "20"),
                                                                        ("b", "1", "30")]])
    used = json.dumps(filter)
    values = {":n": {"N": "15"}, ":p": {"S": "a"}, ":two": {"N": "2"}}
    filter = {**filter, "ExpressionAttributeValues": {name: values[name] for name in values if name in used}}
    begun = start_export(place, unused_name, FilterSpecification=filter)
    assert begun["FilterSpecification"] == filter
    ended = wait_export(place.client, begun["ExportArn"])
    assert in_order(record["Item"] for record in exported(place, ended)) == in_order(wanted)
    ended = wait_export(place.client, start_export(place, unused_name, FilterSpecification=filter,
                                                   ExportFormat="ION")["ExportArn"])
    assert ended["ItemCount"] == len(wanted)


def test_an_export_to_a_bucket_that_is_not_there(place, unused_name):
    make_recoverable(place.client, unused_name, ANN)
    ended = run_export(place.client, unused_name, S3Bucket="nowhere")
    assert (ended["ExportStatus"], ended["FailureCode"]) == ("FAILED", "S3NoSuchBucket") and "EndTime" in ended
    for prefix in ["../..", "a/../../x", "a//b"]:
        ended = run_export(place.client, unused_name, S3Prefix=prefix)
        assert (ended["ExportStatus"], ended["FailureCode"]) == ("FAILED", "S3InvalidKey"), prefix
    ended = run_export(place.client, unused_name, S3Prefix="x" * 1024)
    assert (ended["FailureCode"], ended["FailureMessage"]) == ("S3InvalidKey", "A key is at most 1024 bytes long")
    assert sorted(os.listdir(os.path.join(place.server.folder, "data", "s3"))) == ["photos"]


@pytest.mark.parametrize("change, code, message", [
    ({"S3Prefix": "nulp\0/x/y"}, "ValidationException",
     "1 validation error detected: Value 'nulp\0/x/y' at 's3Prefix' failed to satisfy constraint: Member must satisfy "
     "regular expression pattern: [^\\x00]*"),
    ({"TableArn": "{name}"}, "ValidationException",
     "One or more parameter values were invalid: tableArn is not a valid ARN"),
    ({"TableArn": "{arn}/index/i-1"}, "ValidationException", "Invalid Request: Table ARN is invalid."),
    ({"TableArn": "{arn}-gone"}, "TableNotFoundException", "Table not found: {arn}-gone"),
    ({"S3SseKmsKeyId": "k"}, "ValidationException",
     "Invalid Request: KMS Key Id is not supported for this encryption type"),
    ({"IncrementalExportSpecification": {"ExportFromTime": 1}}, "ValidationException",
     "Invalid Request: Export Type expected to be Incremental Export when incremental export specification is "
     "provided"),
    ({"IncrementalExportSpecification": {"ExportFromTime": 1}, "ExportType": "FULL_EXPORT"}, "ValidationException",
     "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not be provided"),
    ({"ExportType": "INCREMENTAL_EXPORT"}, "ValidationException",
     "Invalid Request: Incremental Export Specification expected when export type is set as Incremental Export"),
    ({"IncrementalExportSpecification": {}, "ExportType": "INCREMENTAL_EXPORT"}, "ValidationException",
     "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification"),
    ({"FilterSpecification": {}}, "ValidationException",
     "Invalid Request: Invalid FilterSpecification: The specification can not be empty"),
    ({"FilterSpecification": {"FilterExpression": "n >"}}, "ValidationException",
     'Invalid FilterExpression: Syntax error; token: "<EOF>", near: ">"'),
    ({"FilterSpecification": {"KeyConditionExpression": "n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}},
     "ValidationException", "Query condition missed key schema element: pk"),
    ({"FilterSpecification": {"KeyConditionExpression": "pk = :p", "FilterExpression": "pk <> :p",
                              "ExpressionAttributeValues": {":p": {"S": "a"}}}}, "ValidationException",
     "Filter Expression can only contain non-primary key attributes: Primary key attribute: pk"),
    ({"ExportTime": 4102444800}, "InvalidExportTimeException", "Export Time is invalid"),
    ({"ExportTime": 1000000000}, "InvalidExportTimeException", "Export Time is invalid"),
])
def test_exports_that_are_refused(place, change, code, message):
    name = "refused-exports"
    if name not in place.client.list_tables()["TableNames"]:
        make_recoverable(place.client, name)
    words = {"name": name, "arn": arn_of(name)}
    change = {key: value.format(**words) if isinstance(value, str) else value for key, value in change.items()}
    request = {"TableArn": arn_of(name), "S3Bucket": "photos", **change}
    with Connection(place.server.url) as connection:
        reply = connection.call("ExportTableToPointInTime", request)
    assert (reply.type, reply.message) == (code, message.format(**words))


def test_an_export_needs_point_in_time_recovery(place, unused_name):
    create_table(place.client, unused_name)
    with pytest.raises(ClientError) as caught:
        place.client.export_table_to_point_in_time(TableArn=arn_of(unused_name), S3Bucket="nowhere")
    assert caught.value.response["Error"] == {
        "Code": "PointInTimeRecoveryUnavailableException",
        "Message": f"Point in time recovery is not enabled for table '{unused_name}'"}


def test_exports_by_token_and_in_lists(place, unused_name):
    make_recoverable(place.client, unused_name, ANN)
    request = {"TableArn": arn_of(unused_name), "S3Bucket": "photos", "ClientToken": f"t-{unused_name}"}
    first = place.client.export_table_to_point_in_time(**request)["ExportDescription"]
    assert place.client.export_table_to_point_in_time(**request)["ExportDescription"]["ExportArn"] == first["ExportArn"]
    with pytest.raises(ClientError) as caught:
        place.client.export_table_to_point_in_time(**{**request, "ExportFormat": "ION"})
    assert caught.value.response["Error"] == {
        "Code": "ExportConflictException",
        "Message": "Export conflict: Duplicate request detected with conflicting parameters"}
    second = run_export(place.client, unused_name)
    wait_export(place.client, first["ExportArn"])
    with Connection(place.server.url) as connection:
        listed = connection.call("ListExports", {"TableArn": arn_of(unused_name)}).json["ExportSummaries"]
    assert [(one["ExportArn"], one["ExportStatus"], one["ExportType"]) for one in listed] == [
        (second["ExportArn"], "COMPLETED", "FULL_EXPORT"), (first["ExportArn"], "COMPLETED", "FULL_EXPORT")]
    place.client.delete_table(TableName=unused_name)
    assert place.client.list_exports(TableArn=arn_of(unused_name))["ExportSummaries"] == []
    missing = f"{arn_of(unused_name)}/export/01000000000000-00000000"
    elsewhere = missing.replace("us-east-1", "eu-west-1")
    for arn, code, message in [("x" * 40, "ValidationException", "Invalid Export ARN"),
                               (elsewhere, "ExportNotFoundException", "Export not found: Invalid export arn"),
                               (missing, "ExportNotFoundException", f"Export not found: Export not found: {missing}")]:
        with pytest.raises(ClientError) as caught:
            place.client.describe_export(ExportArn=arn)
        assert caught.value.response["Error"] == {"Code": code, "Message": message}


# ---- quipu load FOLDER ----

def write_export(folder, table="Music", items=(ANN, BOB), **more):
    """What `aws s3 sync` brings of an export of the service."""
    data = gzip.compress(lines(*items).encode())
    os.makedirs(folder / "data")
    (folder / "data" / "asdl123dasas.json.gz").write_bytes(data)
    line = {"itemCount": len(items), "md5Checksum": md5_of(data), "etag": "af83d6f217c19b8b0fff8023d8ca4716-1",
            "dataFileS3Key": "AWSDynamoDB/01693685827463-2d8752fd/data/asdl123dasas.json.gz"}
    (folder / "manifest-files.json").write_text(json.dumps({**line, **more.pop("line", {})}) + "\n")
    summary = {"version": "2020-06-30", "tableArn": f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}",
               "outputFormat": "DYNAMODB_JSON", **more}
    (folder / "manifest-summary.json").write_text(json.dumps(summary))


def test_an_export_of_the_service_is_loaded_by_one_command(tmp_path):
    write_export(tmp_path / "export" / "AWSDynamoDB" / "01693685827463-2d8752fd")
    result = quipu("load", str(tmp_path / "export"), on=tmp_path / "data")
    assert result.returncode == 1 and "--keys HASH:S,RANGE:N makes it" in result.stderr
    result = quipu("load", str(tmp_path / "export"), "--keys", "pk:S", on=tmp_path / "data")
    assert result.returncode == 0, result.stderr
    found = in_order(json.loads(line) for line in output("scan", "Music", on=tmp_path / "data").splitlines())
    assert found == in_order([{"pk": "ann", "n": 1.5, "m": {"l": [None, False]}},
                              {"pk": "bob", "ss": {"$set": ["x", "y"]}}])
    other = quipu("load", str(tmp_path / "export"), "--table", "Other", "--keys", "pk:S", on=tmp_path / "data")
    assert other.returncode == 0 and len(output("scan", "Other", on=tmp_path / "data").splitlines()) == 2


@pytest.mark.parametrize("form", ["DYNAMODB_JSON", "ION"])
def test_an_export_of_ours_is_loaded_too(place, unused_name, tmp_path, form):
    make_recoverable(place.client, unused_name, ALL_TYPES)
    ended = run_export(place.client, unused_name, ExportFormat=form, S3Prefix=unused_name)
    folder = os.path.dirname(os.path.join(place.buckets, "photos", ended["ExportManifest"]))
    result = quipu("load", folder, "--keys", "pk:S", on=tmp_path / "data")
    assert result.returncode == 0, result.stderr
    assert output("scan", unused_name, on=tmp_path / "data") == output("scan", unused_name, on=place.server.url)


@pytest.mark.parametrize("change, words", [
    ({"exportType": "INCREMENTAL_EXPORT"}, "tells of an incremental export: only full ones can be loaded"),
    ({"line": {"itemCount": 3}}, "has 2 items, and the export's manifest tells of 3"),
    ({"line": {"dataFileS3Key": "../../x"}}, "/data/x is missing, which the export's manifest names"),
    ({"items": [{"pk": {"S": ""}}]}, "line 1: refused: "),
])
def test_exports_that_cannot_be_loaded(tmp_path, change, words):
    write_export(tmp_path / "export", **change)
    result = quipu("load", str(tmp_path / "export"), "--keys", "pk:S", on=tmp_path / "data")
    assert result.returncode == 1 and words in result.stderr, result.stderr


def test_a_folder_that_is_no_export_or_several(tmp_path):
    result = quipu("load", str(tmp_path), "--table", "Music", on=tmp_path / "data")
    assert result.returncode == 1
    assert "is no export: it has neither an export's manifest-summary.json nor" in result.stderr
    report = tmp_path / "exports" / "report"  # of a bulk operation: it counts as none
    os.makedirs(report / "error")
    (report / "manifest-summary.json").write_text('{"bulkOperationArn": "arn:aws:dynamodb:..."}')
    (report / "error" / "000001.json").write_text("{}\n")
    assert "is no export" in quipu("load", str(report), "--table", "Music", on=tmp_path / "data").stderr
    write_export(tmp_path / "exports" / "one")
    result = quipu("load", str(tmp_path / "exports"), "--keys", "pk:S", on=tmp_path / "first")
    assert result.returncode == 0, result.stderr
    write_export(tmp_path / "exports" / "two")
    result = quipu("load", str(tmp_path / "exports"), on=tmp_path / "data")
    assert result.returncode == 1 and "has several exports" in result.stderr
    result = quipu("load", str(tmp_path / "exports" / "one" / "data"), "--table", "Music", "--keys", "pk:S",
                   on=tmp_path / "data")
    assert result.returncode == 0, result.stderr
    assert quipu("load", str(tmp_path), "--keys", "pk", on=tmp_path / "new").returncode == 2
    assert not os.path.exists(tmp_path / "new")


# ---- bulk operations ----

def call(place, operation, request):
    with Connection(place.server.url) as connection:
        return connection.call(operation, request)


def bulk_request(name, prefix, types=("ERROR", "CONDITION_CHECK_FAILURE"), **more):
    source = {"S3Bucket": "photos", "InputFormat": "DYNAMODB_JSON", "S3KeyPrefix": prefix, **more.pop("source", {})}
    target = {"S3Bucket": "photos", "OutputType": list(types), "S3KeyPrefix": f"out-of-{name}"}
    target.update(more.pop("target", {}))
    return {"TableName": name, "InputS3Configuration": source, "OutputS3Configuration": target, **more}


def wait_bulk(place, arn):
    def describe():
        return call(place, "DescribeBulkOperation", {"BulkOperationArn": arn}).json["BulkOperationDescription"]

    return wait_for(describe, arn, "BulkOperationStatus")


def run_bulk(place, *arguments, **more):
    begun = call(place, "StartBulkPutItems", bulk_request(*arguments, **more)).json["BulkOperationDescription"]
    assert begun["BulkOperationStatus"] == "IN_PROGRESS"
    return wait_bulk(place, begun["BulkOperationArn"])


def report_of(place, name, arn, kind):
    folder = f"out-of-{name}/AWSDynamoDB/{arn.rsplit('/', 1)[1]}/{kind}"
    path = os.path.join(place.buckets, "photos", folder)
    names = sorted(os.listdir(path)) if os.path.exists(path) else []
    return [json.loads(line) for one in names for line in read_key(place, f"{folder}/{one}").decode().splitlines()]


def test_bulk_put_items(place, unused_name):
    create_table(place.client, unused_name)
    place.client.put_item(TableName=unused_name, Item={"pk": {"S": "ann"}, "old": {"BOOL": True}})
    place.put(f"{unused_name}/1.gz", gzip.compress(lines(ANN, BOB).encode()))
    place.put(f"{unused_name}/2.gz", gzip.compress(lines({"pk": {"S": "c"}}).encode()))
    ended = run_bulk(place, unused_name, unused_name, source={"InputCompressionType": "GZIP"},
                     PerformanceTier="STANDARD", MaxWriteRequestUnits=2048)
    assert (ended["BulkOperationStatus"], ended["ProcessedItemCount"], ended["FailedItemCount"]) == ("COMPLETED", 3, 0)
    assert ended["ProcessedInputBytes"] == ended["TotalInputBytes"] > 0 and ended["MaxWriteRequestUnits"] == 2048
    assert ended["TableDetails"][0]["TableName"] == unused_name
    assert items_of(place.client, unused_name) == in_order([ANN, BOB, {"pk": {"S": "c"}}])
    listed = call(place, "ListBulkOperations", {"MaxResults": 1}).json["BulkOperationsSummaryList"]
    assert [(one["BulkOperationArn"], one["BulkOperationStatus"]) for one in listed] == [
        (ended["BulkOperationArn"], "COMPLETED")]


def test_bulk_put_items_with_conditions_and_errors(place, unused_name):
    """How a line tells its condition is not known from the service; it is PutItem's own members here."""
    create_table(place.client, unused_name)
    place.client.put_item(TableName=unused_name, Item=ANN)
    absent = {"ConditionExpression": "attribute_not_exists(#p)", "ExpressionAttributeNames": {"#p": "pk"}}
    new = {"pk": {"S": "ann"}, "new": {"BOOL": True}}
    conditional = [{"Item": new, **absent}, {"Item": BOB, **absent}]
    place.put(unused_name, "".join(json.dumps(line) + "\n" for line in conditional))
    ended = run_bulk(place, unused_name, unused_name)
    assert (ended["BulkOperationStatus"], ended["FailedItemCount"]) == ("COMPLETED", 0), ended
    assert items_of(place.client, unused_name) == in_order([ANN, BOB])
    assert report_of(place, unused_name, ended["BulkOperationArn"], "condition-check-failure") == [
        {"S3Key": unused_name, "ItemIndex": 1, "Item": new, "ExistingItem": ANN}]
    place.put(unused_name, lines({"pk": {"S": "x"}}, {"no": {"S": "key"}}) + "garbage\n" + lines({"pk": {"S": "y"}}))
    ended = run_bulk(place, unused_name, unused_name)
    assert (ended["BulkOperationStatus"], ended["FailedItemCount"]) == ("COMPLETED_WITH_ERRORS", 2)
    assert report_of(place, unused_name, ended["BulkOperationArn"], "error") == [
        {"S3Key": unused_name, "ItemIndex": 3, "ErrorMessage": "a line is not JSON"},
        {"S3Key": unused_name, "ItemIndex": 2, "Item": {"no": {"S": "key"}},
         "ErrorMessage": "One or more parameter values were invalid: Missing the key pk in the item"}]
    assert {"pk": {"S": "x"}} in items_of(place.client, unused_name)
    ended = run_bulk(place, unused_name, unused_name, target={"S3Bucket": "nowhere"})
    assert (ended["BulkOperationStatus"], ended["FailureCode"]) == ("FAILED", "S3NoSuchBucket")


def test_bulk_operations_are_cancelled(place, unused_name):
    create_table(place.client, unused_name)
    place.put(unused_name, lines(*({"pk": {"S": f"k{number}"}} for number in range(60000))))
    request = bulk_request(unused_name, unused_name)
    for _ in range(10):
        begun = call(place, "StartBulkPutItems", request).json["BulkOperationDescription"]
        arn = {"BulkOperationArn": begun["BulkOperationArn"]}
        reply = call(place, "CancelBulkOperation", arn)
        ended = wait_bulk(place, begun["BulkOperationArn"])
        if reply.status == 200 and ended["BulkOperationStatus"] == "CANCELLED":
            break
    assert reply.json == {**arn, "BulkOperationStatus": "CANCELLING"}
    assert 0 <= ended["ProcessedItemCount"] < 60000
    reply = call(place, "CancelBulkOperation", arn)
    assert (reply.type, reply.message) == ("ValidationException",
                                           "Invalid Request: the bulk operation is not in progress")


def test_what_a_bulk_operation_uses(place, unused_name):
    """In whole units of 1 KB, as writes are charged; that the service rounds so, too, is a guess."""
    names = ("pk", "owner", "sk")
    place.client.create_table(
        TableName=unused_name, BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        LocalSecondaryIndexes=[{"IndexName": "local", "Projection": {"ProjectionType": "ALL"}, "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "owner", "KeyType": "RANGE"}]}],
        GlobalSecondaryIndexes=[{"IndexName": "by-owner", "Projection": {"ProjectionType": "KEYS_ONLY"},
                                 "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}]}])
    large = {"pk": {"S": "a"}, "sk": {"S": "1"}, "owner": {"S": "x"}, "text": {"S": "t" * 2000}}
    place.put(unused_name, lines(large, {"pk": {"S": "b"}, "sk": {"S": "1"}}, {"pk": {"S": "no sort key"}}))
    ended = run_bulk(place, unused_name, unused_name)
    assert ended["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert ended["BulkOperationUsage"] == [{
        "TableName": unused_name, "BulkPutBytes": 6 * 1024, "Table": {"BulkPutBytes": 3 * 1024},
        "LocalSecondaryIndexes": {"local": {"BulkPutBytes": 2 * 1024}},
        "GlobalSecondaryIndexes": {"by-owner": {"BulkPutBytes": 1024}}}]


def test_a_bulk_operation_keeps_to_its_units(place, unused_name):
    """It would take more than a minute, and ends at once when it is cancelled."""
    count = 200
    create_table(place.client, unused_name)
    items = ({"pk": {"S": f"k{number}"}, "text": {"S": "x" * 390000}} for number in range(count))
    place.put(unused_name, gzip.compress("".join(lines(item) for item in items).encode(), 1))
    request = bulk_request(unused_name, unused_name, source={"InputCompressionType": "GZIP"},
                           MaxWriteRequestUnits=1024)
    begun = call(place, "StartBulkPutItems", request).json["BulkOperationDescription"]
    arn = {"BulkOperationArn": begun["BulkOperationArn"]}
    until = time.monotonic() + WAIT_SECONDS
    while not call(place, "DescribeBulkOperation", arn).json["BulkOperationDescription"]["ProcessedItemCount"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert call(place, "CancelBulkOperation", arn).status == 200
    ended = wait_bulk(place, begun["BulkOperationArn"])
    written = ended["BulkOperationUsage"][0]["BulkPutBytes"]
    assert ended["BulkOperationStatus"] == "CANCELLED" and ended["ProcessedItemCount"] < count
    assert 0 < written <= ended["ProcessedItemCount"] * 381 * 1024
    seconds = ended["EndTime"] - ended["StartTime"]
    assert written <= (seconds + 1) * 1024 * 1024 + 16 * 1024 * 1024  # a flush is ahead of its time, and one behind


def test_bulk_operations_that_are_refused(place, unused_name):
    create_table(place.client, unused_name)
    global_table = f"{unused_name}-global"
    create_table(place.client, global_table, StreamSpecification={
        "StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    place.client.update_table(TableName=global_table, ReplicaUpdates=[{"Create": {"RegionName": "eu-west-1"}}])
    reply = call(place, "StartBulkPutItems", bulk_request(global_table, "nothing/"))
    assert (reply.type, "global tables" in reply.message) == ("ValidationException", True)
    request = bulk_request(unused_name, "nothing/", ClientToken=f"b-{unused_name}")
    first = call(place, "StartBulkPutItems", request).json["BulkOperationDescription"]["BulkOperationArn"]
    assert call(place, "StartBulkPutItems", request).json["BulkOperationDescription"]["BulkOperationArn"] == first
    for change, code in [({"PerformanceTier": "ACCELERATED"}, "IdempotentParameterMismatchException"),
                         ({"TableName": f"{unused_name}-gone", "ClientToken": "other"}, "ResourceNotFoundException"),
                         ({"MaxWriteRequestUnits": 1}, "ValidationException"),
                         ({"OutputS3Configuration": {"OutputType": []}}, "ValidationException"),
                         ({"OutputS3Configuration": {"OutputType": ["ERROR", "FOO"]}}, "ValidationException")]:
        reply = call(place, "StartBulkPutItems", {**request, **change})
        assert reply.type == code
    assert reply.message == (
        "1 validation error detected: Value '[ERROR, FOO]' at 'outputS3Configuration.outputType' failed to satisfy "
        "constraint: Member must satisfy constraint: [Member must satisfy enum value set: [ERROR, "
        "CONDITION_CHECK_FAILURE]]")
    for arn, code in [("x" * 40, "ValidationException"), (first[:-1] + "z", "ResourceNotFoundException")]:
        for operation in ("DescribeBulkOperation", "CancelBulkOperation"):
            assert call(place, operation, {"BulkOperationArn": arn}).type == code


# ---- the server is killed ----

def test_an_import_goes_on_after_a_crash():
    count = 30000
    place = Place()
    try:
        place.put("all", lines(*({"pk": {"S": f"k{number}"}, "n": {"N": str(number)}} for number in range(count))))
        arn = place.client.import_table(**import_request("imported", "all"))["ImportTableDescription"]["ImportArn"]
        kills = 0
        for _ in range(4):
            until = time.monotonic() + WAIT_SECONDS
            while "imported" not in place.client.list_tables()["TableNames"]:
                assert time.monotonic() < until
            status = place.client.describe_table(TableName="imported")["Table"]["TableStatus"]
            if status == "CREATING":  # others can neither use nor delete it
                with pytest.raises(ClientError) as caught:
                    place.client.delete_table(TableName="imported")
                    place.client.get_item(TableName="imported", Key={"pk": {"S": "k1"}})
                assert caught.value.response["Error"]["Code"] in ("ResourceInUseException", "ResourceNotFoundException")
            kills += status == "CREATING"
            place.crash()
        ended = wait_for(lambda: place.client.describe_import(ImportArn=arn)["ImportTableDescription"], arn,
                         "ImportStatus")
        assert (ended["ImportStatus"], ended["ImportedItemCount"]) == ("COMPLETED", count), ended
        assert kills, "it was never killed while it imported"
        assert place.client.describe_table(TableName="imported")["Table"]["TableStatus"] == "ACTIVE"
        assert place.client.scan(TableName="imported", Select="COUNT")["Count"] > 0
        assert place.client.describe_table(TableName="imported")["Table"]["ItemCount"] == count
    finally:
        place.server.close()


def test_exports_and_bulk_operations_tell_the_truth_after_a_crash():
    """Wherever the server dies: COMPLETED means that all is there, and FAILED that it is not."""
    place = Place()
    try:
        make_recoverable(place.client, "exported", *({"pk": {"S": f"k{number}"}} for number in range(20)))
        place.put("all", lines(*({"pk": {"S": f"k{number}"}} for number in range(5000))))
        for round in range(5):
            export = place.client.export_table_to_point_in_time(TableArn=arn_of("exported"), S3Bucket="photos")
            bulk = call(place, "StartBulkPutItems", bulk_request("exported", "all")).json["BulkOperationDescription"]
            time.sleep(round * 0.01)
            place.crash()
            ended = wait_export(place.client, export["ExportDescription"]["ExportArn"])
            identity = ended["ExportArn"].rsplit("/", 1)[1]
            manifest = os.path.join(place.buckets, "photos", "AWSDynamoDB", identity, "manifest-summary.json")
            assert ended["ExportStatus"] == ("COMPLETED" if os.path.exists(manifest) else "FAILED")
            if ended["ExportStatus"] == "COMPLETED":
                with open(manifest) as file:
                    assert json.load(file)["itemCount"] == ended["ItemCount"] >= 20
            else:
                assert ended["FailureMessage"].startswith("The server was stopped before the export was complete.")
            ended = wait_bulk(place, bulk["BulkOperationArn"])
            assert ended["BulkOperationStatus"] in ("COMPLETED", "FAILED")
            assert ended["BulkOperationStatus"] == "FAILED" or ended["ProcessedItemCount"] == 5000
    finally:
        place.server.close()


# ---- an S3 over HTTP ----

@pytest.fixture(scope="module")
def s3():
    s3 = S3rver("photos")
    yield s3
    s3.close()


def keys_of(key):
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "S3RVER", "AWS_REGION": "us-east-1"}


def test_exports_and_imports_by_an_s3_endpoint(s3):
    """With keys that must be escaped, and a list of more than one page. Signatures: test/unit/client_sign.c."""
    with Quipu("--memory", "--no-functions", "--s3-endpoint", s3.url, env=keys_of("S3RVER")) as server:
        client = boto_client(server.url)
        make_recoverable(client, "exported", ANN, BOB)
        ended = run_export(client, "exported", S3Prefix="a b/\u00fc+&=%")
        assert ended["ExportStatus"] == "COMPLETED", ended
        data = ended["ExportManifest"].replace("manifest-summary.json", "data/")
        for number in range(1100):  # nothing is in them
            open(os.path.join(s3.folder, "photos", data, f"a{number}._S3rver_object"), "w").close()
        imported = run_import(client, "imported", data, InputCompressionType="GZIP")
        assert (imported["ImportStatus"], imported["ImportedItemCount"]) == ("COMPLETED", 2), imported
        assert items_of(client, "imported") == in_order([ANN, BOB])
        ended = run_export(client, "exported", S3Bucket="nowhere")
        assert (ended["ExportStatus"], ended["FailureCode"]) == ("FAILED", "S3NoSuchBucket"), ended
        ended = run_export(client, "exported", S3Prefix="../nowhere")
        assert (ended["ExportStatus"], ended["FailureCode"]) == ("FAILED", "S3InvalidKey"), ended


def test_an_s3_endpoint_that_refuses_or_is_not_there(s3):
    for url, code in [(s3.url, "S3AccessDenied"), (f"http://127.0.0.1:{free_port()}", "S3Error")]:
        with Quipu("--memory", "--no-functions", "--s3-endpoint", url, env=keys_of("ANOTHER")) as server:
            client = boto_client(server.url)
            make_recoverable(client, "exported", ANN)
            ended = run_export(client, "exported")
            assert (ended["ExportStatus"], ended["FailureCode"]) == ("FAILED", code), ended


def test_an_s3_endpoint_is_a_url():
    for words in (["--s3-endpoint", "ftp://x"], ["--s3-endpoint", "http://x/path"],
                  ["--s3-endpoint", "http://x", "--s3-folder", "y"]):
        result = quipu("serve", "--memory", "--port", "0", *words)
        assert result.returncode in (1, 2) and "s3" in result.stderr.lower(), result.stderr


def test_notes_of_old_jobs_are_forgotten():
    """As on the service, after 90 days; a token counts for 8 hours."""
    with Quipu("--no-functions", "--memory", "--test-hooks") as server:
        client, connection = boto_client(server.url), Connection(server.url)
        request = import_request("first", ClientToken="one", bucket="nowhere")
        arn = client.import_table(**request)["ImportTableDescription"]["ImportArn"]
        assert connection.request("POST", "/_quipu/idle").status == 200
        assert client.describe_import(ImportArn=arn)["ImportTableDescription"]["ImportStatus"] == "FAILED"
        assert client.import_table(**request)["ImportTableDescription"]["ImportArn"] == arn
        for hours, known in [(9, 2), (90 * 24 - 12, 3), (9, 3)]:
            body = json.dumps({"advance_seconds": hours * 3600}).encode()
            assert connection.request("POST", "/_quipu/clock", body=body).status == 200
            assert client.import_table(**request)["ImportTableDescription"]["ImportArn"] != arn
            assert connection.request("POST", "/_quipu/idle").status == 200
            assert len(client.list_imports()["ImportSummaryList"]) == known
        connection.close()
