"""Writes the digests of one hour: one for each user, of all that was noted for them."""
import collections
import json
import os
import urllib.request


def events_of(bucket):
    """All events of a bucket, part after part; most have one."""
    headers = {"Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]}
    for part in range(1, bucket["parts"] + 1):
        url = f"{os.environ['AWS_ENDPOINT_URL']}{bucket['path']}?part={part}"
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            yield from json.load(reply)["events"]


def lambda_handler(event, context):
    bucket = event["detail"]
    notes = collections.defaultdict(list)
    for note in events_of(bucket):
        notes[note["data"]["user"]].append(note["data"]["text"])
    print(f"the hour from {bucket['bucket']}: {bucket['count']} notes for {len(notes)} users")
    # The digests as effects: all of them are written once, whatever is retried.
    return {"quipu": {"transact": [
        {"Put": {"TableName": "Digests", "Item": {
            "user": {"S": user}, "hour": {"S": bucket["bucket"]}, "notes": {"S": ", ".join(sorted(texts))}}}}
        for user, texts in notes.items()]}}
