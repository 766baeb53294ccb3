/** Starts a PostgreSQL server for one test file (infra/postgres.mjs), and creates databases in it. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { Client } from "pg";

export interface TestPostgres {
  /** Creates a database and gives its address. */
  newDatabase(): Promise<string>;
  /** Stops the server as a crash would. */
  halt(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Commits survive `halt` only with `durable`. Throws with the message of infra/postgres.mjs when PostgreSQL is not
 * installed.
 */
export async function startPostgres({ durable = false } = {}): Promise<TestPostgres> {
  const child = spawn(
    process.execPath,
    [join(__dirname, "../../infra/postgres.mjs"), ...(durable ? ["--durable"] : [])],
    { stdio: ["pipe", "pipe", "pipe"] },
  );
  const lines = createInterface(child.stdout);
  const nextLine = nextLineOf(child, lines);
  const url = new URL((JSON.parse(await nextLine()) as { url: string }).url);
  const order = async (word: string): Promise<void> => {
    const done = nextLine();
    child.stdin.write(`${word}\n`);
    await done;
  };
  let count = 0;
  const newDatabase = async (): Promise<string> => {
    const client = new Client({ connectionString: url.href });
    await client.connect();
    const name = `test_${++count}`;
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
    return new URL(name, url).href;
  };
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await once(child, "exit");
  };
  return { newDatabase, stop, halt: () => order("halt"), resume: () => order("resume") };
}

/** The next line that the server's process prints. Throws with what it complained of if it ends before. */
function nextLineOf(child: ChildProcess, lines: Interface): () => Promise<string> {
  let said = "";
  child.stderr?.on("data", (data: Buffer) => (said += data.toString()));
  return async () => {
    const ended = new AbortController();
    const failed = once(child, "exit", { signal: ended.signal }).then(() => {
      throw new Error(said);
    });
    try {
      const [line] = (await Promise.race([once(lines, "line"), failed])) as [string];
      return line;
    } finally {
      failed.catch(() => undefined);
      ended.abort();
    }
  };
}
