"""The message wall of the original: a function behind any URL, messages in a file of a shared file system."""
import base64
import fcntl
import os

FILE = "/mnt/messages/content"


def messages():
    if not os.path.exists(FILE):
        return "No message yet."
    with open(FILE, encoding="utf-8") as file:
        return file.read()


def lambda_handler(event, context):
    method = event["requestContext"]["http"]["method"]
    if method == "POST":
        body = event["body"]
        if event["isBase64Encoded"]:  # as on AWS, what `curl -d` sends is
            body = base64.b64decode(body).decode()
        with open(FILE, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(body + "\n")
    if method == "DELETE" and os.path.exists(FILE):
        os.remove(FILE)
    return {"statusCode": 200, "headers": {"Content-Type": "text/plain"}, "body": messages()}
