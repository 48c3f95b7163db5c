// Mails a user the recommendations that waited for a login. It is told of a complete group, and asks for its events.
export const handler = async (event) => {
  const { key: user, generation: number, path } = event.detail;
  const headers = { Authorization: `Bearer ${process.env.QUIPU_TOKEN}` };
  const { events } = await (await fetch(`${process.env.AWS_ENDPOINT_URL}${path}&limit=1000`, { headers })).json();
  const items = events.filter(({ kind }) => kind === "recommendation").map(({ data }) => data.item).sort();
  console.log(`mail to ${user}: you may like ${items.join(", ")}`);
  // The mail as an effect: written once, whatever is retried.
  return { quipu: { transact: [{ Put: { TableName: "Mails", Item: {
    user: { S: user }, number: { N: `${number}` }, items: { L: items.map((item) => ({ S: item })) } } } }] } };
};
