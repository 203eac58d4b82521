/** The host's end of Python in a process of its own; see host_process.py. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { type Interface, createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Bytes } from "../../src/channel/bytes.ts";
import { bytes } from "./hex.ts";

export class PythonHost {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #reader: Interface;

  constructor() {
    // The build names the Python that has bothy_wire; the tests run in the console's folder.
    this.#process = spawn(process.env["PYTHON"] ?? "python3", ["tests/channel/host_process.py"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#reader = createInterface(this.#process.stdout);
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** A call, and the frames that the host has to say behind it. */
  async call(what: string, words: object = {}): Promise<{ gives: any; frames: Bytes[] }> {
    this.#process.stdin.write(JSON.stringify({ do: what, ...words }) + "\n");
    const line = await this.#lines.next();
    if (line.done) throw new Error("the host's process ended");
    const { gives, frames } = JSON.parse(line.value);
    return { gives, frames: frames.map(bytes) };
  }

  stop(): void {
    this.#reader.close();
    this.#process.kill();
  }
}
