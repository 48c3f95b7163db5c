// Copies a file that is too long for one call. A trigger on the table of work starts it for a new unit, and again
// for each progress that it saved itself, until the unit is DONE.
import { open, writeFile } from "node:fs/promises";

const SPARE_MS = 1000; // what is left of a call's time when it saves and ends
const api = process.env.AWS_ENDPOINT_URL + "/v1/work/copies/";
const headers = { Authorization: `Bearer ${process.env.QUIPU_TOKEN}` };

async function post(path, body) {
  const reply = await fetch(api + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`);
  return text ? JSON.parse(text) : null; // 204: nothing to claim
}

// The unit as it is now, claimed: a call that died is made again with the same record, and that is long past.
async function take(id) {
  const unit = await (await fetch(api + id, { headers })).json();
  return unit.state === "READY" ? post("claim", { owner: "copy" }) : unit;
}

// The example's own trouble: it is killed once behind each of these places, with half a slice written.
async function die({ to, deaths }, offset) {
  for (const place of deaths.filter((place) => offset >= place)) {
    const first = await writeFile(`${to}.died-${place}`, "", { flag: "wx" }).then(() => true, () => false);
    if (first) process.kill(process.pid, "SIGKILL");
  }
}

// What was written behind the saved offset is written again after a death, to the same place.
async function copySlice(files, data, offset) {
  const { bytesRead, buffer } = await files.from.read(Buffer.alloc(data.slice), 0, data.slice, offset);
  const half = bytesRead >> 1;
  await files.to.write(buffer, 0, half, offset);
  await die(data, offset);
  await files.to.write(buffer, half, bytesRead - half, offset + half);
  return offset + bytesRead;
}

export const handler = async (event, context) => {
  const unit = await take(event.Records[0].dynamodb.NewImage.id.S);
  if (unit?.state !== "CLAIMED") return;
  const { id, fence, data } = unit;
  const files = { from: await open(data.from), to: await open(data.to, "r+") };
  let offset = unit.progress ?? 0;
  console.log(`goes on at byte ${offset}`);
  for (let n = 0; n < data.slices && offset < data.size && context.getRemainingTimeInMillis() > SPARE_MS; n++)
    offset = await copySlice(files, data, offset);
  await files.from.close();
  await files.to.close();
  if (offset < data.size) await post(`${id}/beat`, { fence, progress: offset }); // this write starts the next call
  else await post(`${id}/finish`, { fence, result: { bytes: offset } });
};
