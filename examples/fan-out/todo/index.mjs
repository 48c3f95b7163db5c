// Takes todos out of the stream: the new images as plain objects. One without a description is nobody's todo.
function plain(attribute) {
  const [[type, value]] = Object.entries(attribute);
  return type === "N" ? Number(value) : value;
}

export const handler = async (event) => {
  const todos = event.Records.map(({ dynamodb }) =>
    Object.fromEntries(Object.entries(dynamodb.NewImage).map(([name, attribute]) => [name, plain(attribute)])));
  for (const todo of todos) if (!todo.description) throw new Error(`todo ${todo.id} has no description`);
  console.log("todos:", todos.map((todo) => todo.id).join(" "));
  // Applied in one transaction with the trigger's position: whatever is retried, each todo is taken once.
  return { quipu: { transact: todos.map((todo) => ({ Update: {
    TableName: "TodosTaken", Key: { id: { S: todo.id } },
    UpdateExpression: "ADD times :one", ExpressionAttributeValues: { ":one": { N: "1" } } } })) } };
};
