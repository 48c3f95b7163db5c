// Called by the server with the events of one partition, in order. One event cannot be handled, whoever tries.
import { appendFileSync } from "node:fs";

export const handler = async ({ partition, events }) => {
  for (const { sequence, key, data } of events) {
    if (data.broken) throw new Error(`event ${sequence} of ${key} has no price`);
  }
  const lines = events.map(({ sequence, key, data }) => `${partition} ${sequence} ${key} ${data.number}\n`);
  appendFileSync(process.env.HANDLED, lines.join(""));
};
