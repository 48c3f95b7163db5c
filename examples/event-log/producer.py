"""producer.py NAME KEYS EVENTS: appends EVENTS numbered events to each of its KEYS keys, in batches of ten.

Every third batch is sent twice, as a producer does that did not hear the answer: the token of an event says that it is
the same one.
"""
import json
import os
import sys
import time
import urllib.request

name, keys, events = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
url = os.environ["QUIPU_URL"] + "/v1/logs/orders"


def append(batch):
    request = urllib.request.Request(url, json.dumps({"events": batch}).encode(), method="POST")
    with urllib.request.urlopen(request) as reply:
        return [(e["partition"], e["sequence"]) for e in json.load(reply)["events"]]


batch, batches, answers = [], 0, []
for number in range(1, events + 1):
    for key in range(keys):
        batch.append({"key": f"{name}-{key}", "data": {"number": number}, "token": f"{name}-{key}-{number}"})
        if len(batch) == 10 or (number, key) == (events, keys - 1):
            batches += 1
            answers = append(batch)
            if batches % 3 == 0:
                assert append(batch) == answers, "the same events got other numbers"
            batch = []
            time.sleep(0.03)
print(f"{name}: {keys * events} events in {batches} batches, {batches // 3} of them sent twice")
