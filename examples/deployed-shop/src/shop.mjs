// Three handlers of one file. DynamoDB is called by HTTP, so that the example needs no package; any SDK does as well.
const { ORDERS, TOTALS, STAGE, AWS_ENDPOINT_URL, QUIPU_TOKEN } = process.env;

const dynamodb = async (operation, request) => {
  const reply = await fetch(AWS_ENDPOINT_URL, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${QUIPU_TOKEN}`,
      "Content-Type": "application/x-amz-json-1.0",
      "X-Amz-Target": `DynamoDB_20120810.${operation}`,
    },
    body: JSON.stringify(request),
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(`${answer.__type}: ${answer.message}`);
  return answer;
};

export const take = async (event) => {
  const { id } = event.pathParameters;
  const { customer } = JSON.parse(event.body);
  await dynamodb("PutItem", { TableName: ORDERS, Item: { id: { S: id }, customer: { S: customer } } });
  return { statusCode: 201, body: JSON.stringify({ id, customer, stage: STAGE }) };
};

export const count = async (event) => ({
  quipu: { transact: [{ Update: { // applied once, with the trigger's position
    TableName: TOTALS, Key: { id: { S: "orders" } }, UpdateExpression: "ADD seen :n",
    ExpressionAttributeValues: { ":n": { N: `${event.Records.length}` } } } }] },
});

export const report = async (event) => {
  const { Item } = await dynamodb("GetItem", { TableName: TOTALS, Key: { id: { S: "orders" } }, ConsistentRead: true });
  console.log(event["detail-type"], Item ? Item.seen.N : "0");
};
