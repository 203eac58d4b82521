/** This end and the host's end of Python, against a simple model: what was typed is written, what was printed is shown. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Bytes } from "../../src/channel/bytes.ts";
import { DeviceEnd } from "../../src/channel/device_end.ts";
import type { Exited, Output, Repaint } from "../../src/channel/device_events.ts";
import { newChannelKey } from "../../src/channel/noise.ts";
import { chanceOf } from "../chance.ts";
import { bytes, hex } from "./hex.ts";
import { outgoing } from "./outgoing.ts";
import { PythonHost } from "./python_host.ts";

const LIMITS = { handshake_timeout: 1e9, input_window: 40, output_window: 64, output_window_min: 8, output_window_max: 100 };
const ACTIONS = [
  // Weighted, so that a channel lives long enough to matter before it is lost.
  ...Array<string>(8).fill("carry"),
  ...Array<string[]>(3).fill(["show", "write", "print"]).flat(),
  ...["type", "type", "lose", "lose before it is open", "forget", "exit", "drop", "resize", "ping"],
];
const EXAMPLES = 25;
const host = new PythonHost();
after(() => host.stop());

/** Does what people, programs and networks do, and knows what must come of it. */
class Model {
  now = 0;
  made = 0;
  typed: number[] = [];
  exiting = false;
  toHost: Bytes[] = [];
  toDevice: Bytes[] = [];
  readonly device: DeviceShell;

  constructor(device: DeviceShell) {
    this.device = device;
  }

  async act(action: string, count: number): Promise<void> {
    this.now += count / 1000;
    const { now } = this;
    switch (action) {
      case "type": {
        const data = this.make(count);
        this.typed.push(...data);
        this.device.end.write(data);
        break;
      }
      case "print":
        if (!this.exiting) await this.host("print", { data: hex(this.make(4 * count)), now });
        break;
      case "exit":
        if (this.made <= 1000) break;
        this.exiting = true;
        await this.host("exit", { status: 7, now });
        break;
      case "show":
        this.device.show(1 + Math.floor(count / 10));
        break;
      case "write":
        await this.host("write", { count, now });
        break;
      case "carry":
        await this.carry(count % 4, count % 3);
        break;
      case "drop":
        this.dropped(this.device.end.dropUnsent());
        break;
      case "resize":
        this.device.end.resize(count, 24);
        break;
      case "ping":
        this.device.end.ping(now);
        this.device.end.flush();
        break;
      case "forget":
        await this.host("forget", { count });
        break;
      case "lose":
        await this.lose(count);
        for (let step = 0; step < 3; step++) await this.carry(1, 1);
        break;
      case "lose before it is open":
        await this.lose(count);
        for (let step = 0; step < count % 5; step++) await this.carry(1, 1);
        await this.act("lose", count);
        break;
    }
    await this.collect();
    await this.check();
  }

  /** A pairing ends and the next begins, while what arrived last may still be opened and what goes out be sealed. */
  async lose(count: number): Promise<void> {
    const last = count % 2 === 0 ? this.toDevice.splice(0, count % 3) : [];
    const late = last.map((message) => this.device.receive(message, this.now));
    const sealing = outgoing(this.device.end);
    this.toHost = [];
    this.toDevice = [];
    this.device.gone();
    await this.host("unpaired");
    await this.host("paired", { now: this.now });
    await this.device.end.pair("header.claims.signature", 80, 24, this.now);
    assert.deepEqual(await sealing, []);
    await Promise.all(late);
    await this.collect();
  }

  async carry(toHost: number, toDevice: number): Promise<void> {
    for (const message of this.toHost.splice(0, toHost)) {
      await this.host("receive", { message: hex(message), now: this.now });
    }
    // Handed over at once, as a socket does.
    await Promise.all(this.toDevice.splice(0, toDevice).map((message) => this.device.receive(message, this.now)));
    for (const count of this.device.droppedInputs.splice(0)) this.dropped(count);
    await this.collect();
  }

  async finish(): Promise<void> {
    do {
      await this.carry(this.toHost.length, this.toDevice.length);
      this.device.show(1e9);
      await this.host("write", { count: 1e6, now: this.now });
      await this.collect();
    } while (this.toHost.length + this.toDevice.length + this.device.unshown.length > 0);
    const { gives: state } = await host.call("state");
    assert.equal(state.arrived, hex(Uint8Array.from(this.typed)));
    assert.equal(hex(Uint8Array.from(this.device.terminal)), state.printed);
    assert.equal(this.device.end.pendingInput, 0);
    assert.equal(state.in_flight, 0);
    assert.equal(state.exit_acknowledged, this.exiting);
    assert.equal(this.device.exits.length > 0, this.exiting);
  }

  make(count: number): Bytes {
    this.made += count;
    return Uint8Array.from({ length: count }, (_, index) => (this.made + index) % 251);
  }

  dropped(count: number): void {
    this.typed.length -= count;
  }

  async host(what: string, words: object = {}): Promise<void> {
    this.toDevice.push(...(await host.call(what, words)).frames);
  }

  async collect(): Promise<void> {
    this.toHost.push(...(await outgoing(this.device.end)));
  }

  async check(): Promise<void> {
    const { gives: state } = await host.call("state");
    const arrived = [...bytes(state.arrived)];
    assert.deepEqual(this.typed.slice(0, arrived.length), arrived);
    assert.ok(state.unwritten <= LIMITS.input_window);
    assert.ok(this.device.held <= LIMITS.output_window_max);
  }
}

/** Shows events in order, as its terminal takes them. */
class DeviceShell {
  readonly end: DeviceEnd;
  unshown: (Output | Repaint | Exited)[] = [];
  terminal: number[] = [];
  exits: number[] = [];
  droppedInputs: number[] = [];
  #repaint: number[] = [];
  #repainting = false; // pieces of the repaint of this channel are on their way

  constructor(end: DeviceEnd) {
    this.end = end;
  }

  gone(): void {
    this.end.unpaired();
    this.#repainting = false;
  }

  async receive(message: Bytes, now: number): Promise<void> {
    for (const event of await this.end.receive(message, now)) {
      switch (event.kind) {
        case "opened":
          this.droppedInputs.push(event.droppedInput);
          break;
        case "repaint":
          if (!this.#repainting) this.#dropUnshown();
          this.#repainting = !event.last;
          this.unshown.push(event);
          break;
        case "output":
        case "exited":
          this.unshown.push(event);
      }
    }
  }

  /** Bytes of output that wait for the terminal. */
  get held(): number {
    return this.unshown.reduce((held, event) => held + (event.kind === "output" ? event.data.length : 0), 0);
  }

  /** The terminal takes `count` events. */
  show(count: number): void {
    for (const event of this.unshown.splice(0, count)) {
      switch (event.kind) {
        case "output":
          this.terminal.push(...event.data);
          this.end.processed(event.data.length);
          break;
        case "repaint":
          this.#repaint.push(...event.data);
          if (event.last) [this.terminal, this.#repaint] = [this.#repaint, []];
          break;
        case "exited":
          this.exits.push(event.status);
          this.end.processed(1);
      }
    }
  }

  /** The repaint stands for it. */
  #dropUnshown(): void {
    this.end.processed(this.held + this.unshown.filter((event) => event.kind === "exited").length);
    this.unshown = [];
    this.#repaint = [];
  }
}

test("any interleaving with any losses of the pairing", async () => {
  const first = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const channelKey = await newChannelKey();
  for (let seed = first; seed < first + EXAMPLES; seed++) {
    const chance = chanceOf(seed);
    const { gives: hostKey } = await host.call("start", LIMITS);
    const end = new DeviceEnd({
      channelKey,
      hostChannelKey: bytes(hostKey),
      sessionId: "01890a5d-ac96-774b-bcce-b302099a8057",
      hostId: "01890a5d-ac97-7c0a-9f2e-1d2c3b4a5968",
      profile: "shell",
      sessionUser: "alex-shell",
      term: "xterm-256color",
      limits: { handshakeTimeout: LIMITS.handshake_timeout, inputWindow: LIMITS.input_window },
    });
    const model = new Model(new DeviceShell(end));
    try {
      await model.act("lose", 1);
      const steps = 20 + Math.floor(130 * chance());
      for (let step = 0; step < steps; step++) {
        await model.act(ACTIONS[Math.floor(ACTIONS.length * chance())]!, 1 + Math.floor(40 * chance()));
      }
      await model.finish();
    } catch (error) {
      throw new Error(`SEED=${seed} shows it again`, { cause: error });
    }
  }
});
