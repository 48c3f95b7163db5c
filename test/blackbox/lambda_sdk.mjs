// The JavaScript SDK's Lambda client against the endpoint in argv[2]; prints one JSON object of results for
// test_lambda_sdk.py. argv[4] is an archive of code in JavaScript.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.argv[3] + "/");
const sdk = require("@aws-sdk/client-lambda");

const client = new sdk.LambdaClient({
  endpoint: process.argv[2],
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  maxAttempts: 1,
});
const FunctionName = "javascript-" + process.pid;
const results = {};

async function failure(command) {
  try {
    await client.send(command);
    return null;
  } catch (error) {
    return { name: error.name, message: error.message, status: error.$metadata?.httpStatusCode, reason: error.Reason };
  }
}

const text = (bytes) => (bytes?.length ? JSON.parse(Buffer.from(bytes).toString()) : null);

async function invoke(payload, more = {}) {
  const reply = await client.send(new sdk.InvokeCommand({ FunctionName, Payload: JSON.stringify(payload), ...more }));
  return { status: reply.StatusCode, error: reply.FunctionError, version: reply.ExecutedVersion,
           answer: text(reply.Payload), log: reply.LogResult && Buffer.from(reply.LogResult, "base64").toString() };
}

const made = await client.send(new sdk.CreateFunctionCommand({
  FunctionName, Runtime: "nodejs20.x", Handler: "index.handler", Role: "arn:aws:iam::000000000000:role/any",
  Timeout: 30, Code: { ZipFile: readFileSync(process.argv[4]) }, Environment: { Variables: { MODE: "one" } },
  Tags: { a: "b" },
}));
results.made = { state: made.State, arn: made.FunctionArn, variables: made.Environment.Variables };
results.active = (await sdk.waitUntilFunctionActiveV2({ client, maxWaitTime: 30 }, { FunctionName })).state;

results.invoked = await invoke({ n: 1 }, { LogType: "Tail" });
results.failed = await invoke({ fail: "as asked" });
results.event = (await client.send(new sdk.InvokeCommand({ FunctionName, InvocationType: "Event" }))).StatusCode;
results.dry = (await client.send(new sdk.InvokeCommand({ FunctionName, InvocationType: "DryRun" }))).StatusCode;
results.parallel = (await Promise.all(Array.from({ length: 8 }, (_, n) => invoke({ n })))).map((r) => r.answer.event.n);

await client.send(new sdk.PublishVersionCommand({ FunctionName, Description: "first" }));
const Environment = { Variables: { MODE: "two" } };
await client.send(new sdk.UpdateFunctionConfigurationCommand({ FunctionName, Environment }));
results.updated = (await sdk.waitUntilFunctionUpdatedV2({ client, maxWaitTime: 30 }, { FunctionName })).state;
await client.send(new sdk.CreateAliasCommand({ FunctionName, Name: "live", FunctionVersion: "1" }));
results.alias = await invoke({}, { Qualifier: "live" });
results.latest = await invoke({});

results.versions = [];
for await (const page of sdk.paginateListVersionsByFunction({ client, pageSize: 1 }, { FunctionName }))
  results.versions.push(...page.Versions.map((version) => version.Version));
results.listed = false;
for await (const page of sdk.paginateListFunctions({ client, pageSize: 1 }, {}))
  results.listed ||= page.Functions.some((listed) => listed.FunctionName === FunctionName);
const got = await client.send(new sdk.GetFunctionCommand({ FunctionName }));
results.tags = got.Tags;

await client.send(new sdk.PutFunctionRecursionConfigCommand({ FunctionName, RecursiveLoop: "Allow" }));
results.loop = (await client.send(new sdk.GetFunctionRecursionConfigCommand({ FunctionName }))).RecursiveLoop;
const management = { FunctionName, UpdateRuntimeOn: "FunctionUpdate" };
await client.send(new sdk.PutRuntimeManagementConfigCommand(management));
results.management = (await client.send(new sdk.GetRuntimeManagementConfigCommand({ FunctionName }))).UpdateRuntimeOn;

const Cors = { AllowOrigins: ["https://example.com"], AllowMethods: ["GET"], MaxAge: 5 };
const url = await client.send(new sdk.CreateFunctionUrlConfigCommand({
  FunctionName, AuthType: "NONE", InvokeMode: "RESPONSE_STREAM", Cors }));
await client.send(new sdk.UpdateFunctionUrlConfigCommand({ FunctionName, AuthType: "AWS_IAM" }));
const shown = await client.send(new sdk.GetFunctionUrlConfigCommand({ FunctionName }));
const urls = (await client.send(new sdk.ListFunctionUrlConfigsCommand({ FunctionName }))).FunctionUrlConfigs;
await client.send(new sdk.DeleteFunctionUrlConfigCommand({ FunctionName }));
results.url = { mode: shown.InvokeMode, auth: shown.AuthType, cors: shown.Cors, status: url.$metadata.httpStatusCode,
                same: urls.length === 1 && urls[0].FunctionUrl === url.FunctionUrl,
                gone: await failure(new sdk.GetFunctionUrlConfigCommand({ FunctionName })) };

await client.send(new sdk.PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: 0 }));
results.throttled = await failure(new sdk.InvokeCommand({ FunctionName }));
results.invalid = await failure(new sdk.UpdateFunctionConfigurationCommand({ FunctionName, Timeout: 901 }));
results.missing = await failure(new sdk.GetFunctionCommand({ FunctionName: "not-there" }));
const signing = await client.send(new sdk.GetFunctionCodeSigningConfigCommand({ FunctionName }));
results.signing = signing.FunctionName === FunctionName;

await client.send(new sdk.DeleteFunctionCommand({ FunctionName }));
results.gone = await failure(new sdk.GetFunctionConfigurationCommand({ FunctionName }));
console.log(JSON.stringify(results));
