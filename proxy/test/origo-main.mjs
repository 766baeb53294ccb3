/** Origo's stand-in as a process. Each line of its input is a question in JSON, and it answers with one line. */
import { createInterface } from "node:readline";
import { grantOf, startOrigo } from "./origo.mjs";

const origo = await startOrigo();
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ url: origo.url });
for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  if (question.grant) say(grantOf(question.grant));
  else if (question.forget) {
    origo.forget([question.forget]);
    say(null);
  } else
    say({ objects: [...origo.seen.objects], served: Object.fromEntries(origo.seen.served), status: origo.seen.status });
}
