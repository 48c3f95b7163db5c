"""Answers what it was given."""


def lambda_handler(event, context):
    print("echo")
    return {"event": event, "id": context.aws_request_id, "language": "python"}
