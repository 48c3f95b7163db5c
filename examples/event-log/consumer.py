"""consumer.py OWNER FILE: handles the events of the log in the group `billing` until it is ended.

Handling an event is writing one line to FILE, which all consumers share. Only then it is acknowledged: who is killed in
between leaves events that the next one gets again.
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request

owner, path = sys.argv[1], sys.argv[2]
group = os.environ["QUIPU_URL"] + "/v1/logs/orders/consumers/billing/"
output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def post(action, body):
    request = urllib.request.Request(group + action, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as reply:
        return json.load(reply) if reply.status == 200 else None


def handle(page, event):
    line = [owner, page["partition"], event["sequence"], event["key"], event["data"]["number"]]
    os.write(output, (" ".join(map(str, line)) + "\n").encode())
    time.sleep(0.001)


while True:
    page = post("read", {"owner": owner, "max": 20, "wait": "5s", "for": "2s"})
    if page is None:  # nothing new
        continue
    for event in page["events"]:
        handle(page, event)
    last = page["events"][-1]["sequence"]
    try:
        post("ack", {"partition": page["partition"], "fence": page["fence"], "sequence": last})
    except urllib.error.HTTPError as refusal:
        print(owner, "was too late:", refusal.read().decode(), flush=True)
