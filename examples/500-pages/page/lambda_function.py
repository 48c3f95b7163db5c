"""Processes one page: counts its words, and tells the job that the page is done."""
import http.client
import json
import os

_, _, place = os.environ["AWS_ENDPOINT_URL"].partition("//")
server = http.client.HTTPConnection(place)
headers = {"Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]}


def post(path, body):
    server.request("POST", path, json.dumps(body), headers)
    reply = server.getresponse()
    answer = json.loads(reply.read())
    if reply.status >= 300:
        raise RuntimeError(f"POST {path}: {reply.status} {answer}")
    return answer


def lambda_handler(event, context):
    for record in event["Records"]:
        item = record["dynamodb"]["NewImage"]
        page, words = int(item["page"]["N"]), len(item["text"]["S"].split())
        post("/v1/counters/pages-done", {})  # what one would do first; see the README
        answer = post("/v1/jobs/book/done", {"task": page, "result": {"words": words}})
        if answer["counted"] == 0:
            print(f"page {page} was done before")
        if answer["last"]:
            print(f"page {page} was the last")
