// node writer.mjs NAME COUNT: adds NAME-1, NAME-2, ... to the list, over HTTP with ETag and If-Match.
const [, , name, count] = process.argv;
const url = process.env.QUIPU_URL + "/v1/documents/lists/shopping";

let conflicts = 0;
for (let i = 1; i <= Number(count); ) {
  const seen = await fetch(url);
  const list = await seen.json();
  await new Promise((thought) => setTimeout(thought, 10)); // time enough for others
  list.items.push(`${name}-${i}`);
  const written = await fetch(url, {
    method: "PUT",
    headers: { "If-Match": seen.headers.get("etag") },
    body: JSON.stringify(list),
  });
  if (written.status === 412) conflicts++; // somebody else was quicker: read again
  else if (written.ok) i++;
  else throw new Error(await written.text());
}
console.log(`${name} (Node, HTTP): ${count} additions, ${conflicts} times told to read again`);
