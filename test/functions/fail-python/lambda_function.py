"""Fails as the event says."""
import sys


def lambda_handler(event, context):
    if event["how"] == "raise":
        raise LookupError("as ordered")
    if event["how"] == "exit":
        sys.exit(3)
    return object()
