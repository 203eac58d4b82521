/** A relay, a host and a terminal on a page, as the tests of a session script them. */

import assert from "node:assert/strict";
import { type Bytes, toBase64 } from "../../src/channel/index.ts";
import { newKeys } from "../../src/device/keys.ts";
import { Refusal, type Rest } from "../../src/device/rest.ts";
import type { Opened } from "../../src/device/opened.ts";
import type { Status } from "../../src/device/session_status.ts";
import { TerminalSession } from "../../src/device/terminal_session.ts";
import { bytes, hex } from "../channel/hex.ts";
import { PythonHost } from "../channel/python_host.ts";

const CHANNEL = {
  handshake_timeout: 1e9,
  input_window: 64 * 1024,
  output_window: 4096,
  output_window_min: 1024,
  output_window_max: 8192,
};

/** What stands in the browser's place for a WebSocket. */
export class Socket {
  static readonly OPEN = 1;
  static made: Socket[] = [];
  static changed: () => void = () => undefined;

  readonly url: string;
  readonly texts: string[] = [];
  readonly messages: Bytes[] = [];
  readyState = 0;
  bufferedAmount = 0;
  binaryType = "blob";
  /** The code with which the page closed it. */
  closed: number | null = null;
  onopen: () => void = () => undefined;
  onmessage: (event: { data: string | ArrayBuffer }) => void = () => undefined;
  onclose: (event: { code: number; reason: string }) => void = () => undefined;

  constructor(url: string) {
    this.url = url;
    Socket.made.push(this);
    Socket.changed();
  }

  send(item: string | Bytes): void {
    if (typeof item === "string") this.texts.push(item);
    else this.messages.push(item.slice());
    Socket.changed();
  }

  close(code: number): void {
    this.readyState = 3;
    this.closed = code;
    Socket.changed();
  }

  // ---- the relay's part

  say(item: object | Bytes): void {
    assert.equal(this.binaryType, "arraybuffer");
    this.onmessage({ data: item instanceof Uint8Array ? item.slice().buffer : JSON.stringify(item) });
  }

  shut(code: number, reason = ""): void {
    this.readyState = 3;
    this.onclose({ code, reason });
  }
}

export interface HostState {
  readonly open: boolean;
  readonly arrived: string;
  readonly in_flight: number;
  readonly resumes: readonly string[];
  readonly exit_acknowledged: boolean;
}

/** One session from the page to the host's end of Python. */
export class World {
  readonly session: TerminalSession;
  readonly statuses: Status[] = [];
  readonly said: string[] = [];
  shown = "";
  /** Answers of the relay to GET and POST, by the path's last word. */
  readonly answers: { [word: string]: () => unknown } = {};
  readonly hostKey: Bytes;
  readonly #python: PythonHost;
  #waiting: (() => void)[] = [];

  private constructor(python: PythonHost, opened: Opened, keys: Awaited<ReturnType<typeof newKeys>>, hostKey: Bytes) {
    this.#python = python;
    this.hostKey = hostKey;
    Socket.made = [];
    Socket.changed = () => this.#changed();
    const rest = { relay: "https://relay.example.com", call: async (_method: string, path: string) => this.#answer(path) };
    this.session = new TerminalSession(opened, {
      rest: rest as unknown as Rest,
      keys,
      hostChannelKey: hostKey,
      screen: {
        draw: (data, drawn) => {
          this.shown += Buffer.from(data).toString();
          queueMicrotask(drawn);
          this.#changed();
        },
        size: () => ({ columns: 80, rows: 24 }),
        say: (text) => this.said.push(text),
        bell: () => this.said.push("bell"),
      },
      onStatus: (status) => {
        this.statuses.push(status);
        this.#changed();
      },
    });
  }

  static async make(python: PythonHost): Promise<World> {
    const hostKey = bytes((await python.call("start", CHANNEL)).gives);
    const keys = await newKeys();
    return new World(python, openedBy(hostKey, "the first token"), keys, hostKey);
  }

  get status(): Status {
    return this.statuses.at(-1)!;
  }

  /** The socket with this number, when it is dialled, identified and accepted. */
  async accepted(number: number): Promise<Socket> {
    const socket = await this.until(() => Socket.made[number]);
    socket.readyState = Socket.OPEN;
    socket.onopen();
    socket.say({ type: "stream.hello", challenge: toBase64(new Uint8Array(32)) });
    await this.until(() => socket.texts[0]);
    socket.say({ type: "side.accepted" });
    return socket;
  }

  /** Both sides are here, until both have the channel open. */
  async paired(socket: Socket): Promise<void> {
    await this.host(socket, "unpaired");
    await this.host(socket, "paired", { now: 0 });
    socket.say({ type: "side.paired", session_token: "header.claims.signature" });
    await this.carry(socket, (state) => state.open && this.status.kind === "up");
  }

  /** Messages pass in both directions until the host's state is as wanted. */
  async carry(socket: Socket, wanted: (state: HostState) => boolean): Promise<void> {
    while (!wanted(await this.host(socket, "state"))) {
      await this.until(() => socket.messages.length > 0);
      for (const message of socket.messages.splice(0)) {
        await this.host(socket, "receive", { message: hex(message), now: 0 });
      }
      await this.host(socket, "write", { count: 1e6, now: 0 });
    }
  }

  /** A call of the host; what it has to say goes to the page. */
  async host(socket: Socket, what: string, words: object = {}): Promise<HostState> {
    const { gives, frames } = await this.#python.call(what, words);
    for (const message of frames) socket.say(message);
    return gives;
  }

  /** Waits for what something on the page brings about. */
  async until<Value>(look: () => Value): Promise<NonNullable<Exclude<Value, false>>> {
    for (let found = look(); ; found = look()) {
      if (found) return found as NonNullable<Exclude<Value, false>>;
      await new Promise<void>((changed) => this.#waiting.push(changed));
    }
  }

  #changed(): void {
    for (const each of this.#waiting.splice(0)) each();
  }

  #answer(path: string): unknown {
    const answer = this.answers[path.split("/").at(-1)!];
    if (answer === undefined) throw new Refusal(404, "not_found", `nobody scripted ${path}`, 0);
    return answer();
  }
}

/** What the relay answers to open and attach. */
export function openedBy(hostKey: Bytes, token: string): Opened {
  return {
    session_id: "01890a5d-ac96-774b-bcce-b302099a8057",
    host_id: "01890a5d-ac97-7c0a-9f2e-1d2c3b4a5968",
    profile: "shell",
    session_user: "alex-shell",
    stream_path: "/api/v1/terminal/sessions/01890a5d-ac96-774b-bcce-b302099a8057/stream",
    stream_token: token,
    host_channel_key: toBase64(hostKey),
    expires_in_s: 3600,
  };
}
