// PartiQL by the JavaScript SDK against the endpoint in argv[2]; prints one JSON object for test_statements.py.
import { createRequire } from "node:module";

const require = createRequire(process.argv[3] + "/");
const sdk = require("@aws-sdk/client-dynamodb");

const client = new sdk.DynamoDBClient({
  endpoint: process.argv[2],
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  maxAttempts: 1,
});
const table = "statements-" + process.pid;
const results = {};
const run = (Statement, more = {}) => client.send(new sdk.ExecuteStatementCommand({ Statement, ...more }));

async function failure(promise) {
  try {
    await promise;
    return null;
  } catch (error) {
    return { name: error.name, message: error.message, item: error.Item, reasons: error.CancellationReasons };
  }
}

await client.send(new sdk.CreateTableCommand({
  TableName: table,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }, { AttributeName: "sk", AttributeType: "N" }],
  KeySchema: [{ AttributeName: "pk", KeyType: "HASH" }, { AttributeName: "sk", KeyType: "RANGE" }],
}));
await sdk.waitUntilTableExists({ client, maxWaitTime: 30 }, { TableName: table });

for (let n = 0; n < 7; n++)
  await run(`INSERT INTO "${table}" VALUE {'pk': ?, 'sk': ?, 'even': ?}`,
    { Parameters: [{ S: "a" }, { N: String(n) }, { BOOL: n % 2 === 0 }] });
results.pages = [];
let NextToken;
do {
  const page = await run(`SELECT sk FROM "${table}" WHERE pk = 'a' AND even = true`, { Limit: 3, NextToken });
  results.pages.push(page.Items.map((item) => Number(item.sk.N)));
  NextToken = page.NextToken;
} while (NextToken);

results.duplicate = await failure(run(`INSERT INTO "${table}" VALUE {'pk': 'a', 'sk': 1}`));
results.condition = await failure(run(`UPDATE "${table}" SET x = 1 WHERE pk = 'a' AND sk = 1 AND even = true`,
  { ReturnValuesOnConditionCheckFailure: "ALL_OLD" }));
results.malformed = await failure(run("SELECT * FROM"));
results.updated = await run(
  `UPDATE "${table}" SET x = [1, {'k': <<'s'>>}] WHERE pk = 'a' AND sk = 1 RETURNING ALL NEW *`,
  { ReturnConsumedCapacity: "TOTAL" });
delete results.updated.$metadata;

const batch = await client.send(new sdk.BatchExecuteStatementCommand({
  Statements: [{ Statement: `SELECT x FROM "${table}" WHERE pk = 'a' AND sk = 1` }, { Statement: "SELECT" },
    { Statement: "SELECT * FROM nope WHERE pk = 'a'" }],
}));
results.batch = batch.Responses;

const transact = (statements, more = {}) => client.send(new sdk.ExecuteTransactionCommand({
  TransactStatements: statements.map((Statement) => ({ Statement })), ...more,
}));
results.cancelled = await failure(transact([`DELETE FROM "${table}" WHERE pk = 'a' AND sk = 2`,
  `EXISTS(SELECT * FROM "${table}" WHERE pk = 'a' AND sk = 1 AND x = 1)`]));
for (let i = 0; i < 2; i++)
  await transact([`UPDATE "${table}" SET n = 5 WHERE pk = 'a' AND sk = 3`,
    `DELETE FROM "${table}" WHERE pk = 'a' AND sk = 2`], { ClientRequestToken: "token" });
results.read = (await transact([`SELECT n FROM "${table}" WHERE pk = 'a' AND sk = 3`,
  `SELECT * FROM "${table}" WHERE pk = 'a' AND sk = 2`])).Responses;
await client.send(new sdk.DeleteTableCommand({ TableName: table }));
process.stdout.write(JSON.stringify(results));
