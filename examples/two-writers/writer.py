"""writer.py NAME COUNT: adds NAME-1, NAME-2, ... to the list with nothing but a plain AWS SDK.

A document is an item of the table quipu-documents: keys `collection` and `key`, `version`, `data`. Whoever writes it on
the condition that the version is the one that was read, and raises it by one, takes part on equal terms.
"""
import os
import sys
import time

import boto3

name, count = sys.argv[1], int(sys.argv[2])
table = boto3.resource("dynamodb", endpoint_url=os.environ["QUIPU_URL"]).Table("quipu-documents")
key = {"collection": "lists", "key": "shopping"}
conflicts = 0


def add(item):
    """Whether it was written; not when somebody else was quicker."""
    seen = table.get_item(Key=key, ConsistentRead=True)["Item"]
    time.sleep(0.01)  # time enough for others
    try:
        table.update_item(
            Key=key,
            UpdateExpression="SET #data.#items = list_append(#data.#items, :new), #version = :next",
            ConditionExpression="#version = :seen",
            ExpressionAttributeNames={"#data": "data", "#items": "items", "#version": "version"},
            ExpressionAttributeValues={":new": [item], ":seen": seen["version"], ":next": seen["version"] + 1},
        )
        return True
    except table.meta.client.exceptions.ConditionalCheckFailedException:
        return False


for number in range(1, count + 1):
    while not add(f"{name}-{number}"):
        conflicts += 1
print(f"{name} (Python, boto3): {count} additions, {conflicts} times told to read again")
