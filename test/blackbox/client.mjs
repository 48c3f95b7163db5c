// The JavaScript SDK against the endpoint in argv[2]; prints one JSON object of results for test_javascript.py.
import { createRequire } from "node:module";

const require = createRequire(process.argv[3] + "/");
const sdk = require("@aws-sdk/client-dynamodb");

const client = new sdk.DynamoDBClient({
  endpoint: process.argv[2],
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  maxAttempts: 1,
});
const TableName = "javascript-" + process.pid;
const results = {};

async function failure(command) {
  try {
    await client.send(command);
    return null;
  } catch (error) {
    return { name: error.name, message: error.message, status: error.$metadata?.httpStatusCode, item: error.Item };
  }
}

const key = (id) => ({ id: { S: id } });
await client.send(new sdk.CreateTableCommand({
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
}));
const waited = await sdk.waitUntilTableExists({ client, maxWaitTime: 30 }, { TableName });
results.waiter = waited.state;

const item = {
  ...key("a"), text: { S: "ü" }, number: { N: "1.50" }, bytes: { B: new Uint8Array([0, 1, 255]) },
  list: { L: [{ NULL: true }, { BOOL: false }] }, map: { M: { k: { SS: ["x"] } } },
};
await client.send(new sdk.PutItemCommand({ TableName, Item: item }));
const got = await client.send(new sdk.GetItemCommand({ TableName, Key: key("a"), ConsistentRead: true }));
results.item = { ...got.Item, bytes: Array.from(got.Item.bytes.B) };

const updated = await client.send(new sdk.UpdateItemCommand({
  TableName, Key: key("counter"), UpdateExpression: "ADD #n :one", ExpressionAttributeNames: { "#n": "count" },
  ExpressionAttributeValues: { ":one": { N: "1" } }, ReturnValues: "UPDATED_NEW",
}));
results.updated = updated.Attributes;

await client.send(new sdk.BatchWriteItemCommand({
  RequestItems: { [TableName]: Array.from({ length: 25 }, (_, n) => ({ PutRequest: { Item: key("b" + n) } })) },
}));
results.scanned = 0;
for await (const page of sdk.paginateScan({ client, pageSize: 4 }, { TableName })) results.scanned += page.Items.length;
const both = await client.send(new sdk.BatchGetItemCommand({
  RequestItems: { [TableName]: { Keys: [key("a"), key("counter"), key("nobody")] } },
}));
results.batch = both.Responses[TableName].length;
const queried = await client.send(new sdk.QueryCommand({
  TableName, KeyConditionExpression: "id = :id", ExpressionAttributeValues: { ":id": { S: "a" } },
}));
results.queried = queried.Count;

results.condition = await failure(new sdk.PutItemCommand({
  TableName, Item: key("counter"), ConditionExpression: "attribute_not_exists(id)",
  ReturnValuesOnConditionCheckFailure: "ALL_OLD",
}));
results.invalid = await failure(new sdk.GetItemCommand({ TableName, Key: { other: { S: "x" } } }));
results.missing = await failure(new sdk.DescribeTableCommand({ TableName: "not-there" }));

const parallel = await Promise.all(Array.from({ length: 50 }, () => client.send(new sdk.UpdateItemCommand({
  TableName, Key: key("parallel"), UpdateExpression: "ADD n :one", ExpressionAttributeValues: { ":one": { N: "1" } },
  ReturnValues: "UPDATED_NEW",
}))));
results.parallel = parallel.map((reply) => Number(reply.Attributes.n.N)).sort((a, b) => a - b);

await client.send(new sdk.DeleteTableCommand({ TableName }));
results.gone = (await sdk.waitUntilTableNotExists({ client, maxWaitTime: 30 }, { TableName })).state;
console.log(JSON.stringify(results));
