"""One call of each kind to the binary, within some seconds: `make check` runs it before every commit."""
import urllib.request

from cli import output
from conftest import boto_client, create_table
from support.process import Quipu, run_quipu
from support.wire import Connection


def test_one_of_each(tmp_path):
    folder = str(tmp_path / "data")
    with Quipu("--data", folder) as server:
        client = boto_client(server.url)
        create_table(client, "things", range_type="N")
        for number in range(3):
            client.put_item(TableName="things", Item={"pk": {"S": "a"}, "sk": {"N": str(number)}})
        found = client.query(TableName="things", KeyConditionExpression="pk = :a",
                             ExpressionAttributeValues={":a": {"S": "a"}})
        assert [item["sk"]["N"] for item in found["Items"]] == ["0", "1", "2"]
        client.update_item(TableName="things", Key={"pk": {"S": "a"}, "sk": {"N": "1"}}, UpdateExpression="ADD n :one",
                           ExpressionAttributeValues={":one": {"N": "1"}})
        assert '"n":1' in output("get", "things", "a", "1", on=server.url).replace(" ", "")
        assert output("counter", "add", "visits", on=server.url).strip() == "1"
        with urllib.request.urlopen(server.url + "/healthz") as reply:
            assert reply.status == 200
        with Connection(server.url) as wire:
            assert wire.call("DescribeTable", {"TableName": "none"}).type == "ResourceNotFoundException"
        assert server.stop() == 0
    assert run_quipu("check", "--data", folder).returncode == 0
    assert output("counter", "add", "visits", on=folder).strip() == "2"
