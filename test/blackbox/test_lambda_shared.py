"""Two servers share the functions of one database."""
import json
import os
import threading

import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support.engines import OTHERS, database
from support.process import Quipu

CODE = "def handler(event, context):\n    return {'event': event, 'version': context.function_version}\n"
KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@pytest.fixture(scope="module", params=OTHERS)
def pair(request, tmp_path_factory):
    """The Lambda clients of two servers."""
    folder = tmp_path_factory.mktemp("functions")
    with database(request.param) as home:
        arguments = ["--on", home.url, "--region", "us-east-1", "--functions"]
        with Quipu(*arguments, str(folder / "a"), env=KEYS) as first:
            with Quipu(*arguments, str(folder / "b"), env=KEYS) as second:
                yield lambda_client(first.url), lambda_client(second.url)


def create(client, name, code):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=30,
                           Code={"ZipFile": code})


def test_a_function_of_one_runs_on_the_other(pair):
    first, second = pair
    create(first, "moves", archive({"main.py": CODE, "ballast": os.urandom(700_000).hex()}))
    reply = second.invoke(FunctionName="moves", Payload=b'{"n": 1}')
    assert json.loads(reply["Payload"].read()) == {"event": {"n": 1}, "version": "$LATEST"}
    changed = archive({"main.py": CODE.replace("'event'", "'changed'")})
    second.update_function_code(FunctionName="moves", ZipFile=changed)
    assert second.publish_version(FunctionName="moves")["Version"] == "1"
    assert first.get_function_configuration(FunctionName="moves", Qualifier="1")["Version"] == "1"
    reply = first.invoke(FunctionName="moves", Qualifier="1", Payload=b"2")
    assert json.loads(reply["Payload"].read()) == {"changed": 2, "version": "1"}
    eventually(lambda: "changed" in json.loads(first.invoke(FunctionName="moves", Payload=b"3")["Payload"].read()),
               "the first server has seen the change")
    first.delete_function(FunctionName="moves")
    with pytest.raises(second.exceptions.ResourceNotFoundException):
        second.get_function(FunctionName="moves")


def test_no_change_is_lost(pair):
    create(pair[0], "tagged", archive({"main.py": CODE}))
    arn = pair[0].get_function(FunctionName="tagged")["Configuration"]["FunctionArn"]
    failures = []

    def tag(client, which):
        try:
            for number in range(10):
                client.tag_resource(Resource=arn, Tags={f"{which}-{number}": "x"})
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=tag, args=(client, which)) for which, client in enumerate(pair)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(pair[1].list_tags(Resource=arn)["Tags"]) == 20
    pair[1].delete_function(FunctionName="tagged")
