"""Reads the job with nothing but a plain AWS SDK: it is an item of the table quipu-jobs."""
import os

import boto3

table = boto3.resource("dynamodb", endpoint_url=os.environ["QUIPU_URL"]).Table("quipu-jobs")
job = table.get_item(Key={"id": "book"}, ConsistentRead=True)["Item"]
print(f"boto3 says: job {job['id']} is {job['state']}, {job['total']} tasks, then {job['then']}")
