/** What this end has beyond the shared conversations: bounds of megabytes, and what asynchronous keys bring with them. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Bytes, utf8 } from "../../src/channel/bytes.ts";
import { DeviceEnd } from "../../src/channel/device_end.ts";
import { ChannelError, LocalError } from "../../src/channel/errors.ts";
import { CipherState, newChannelKey } from "../../src/channel/noise.ts";
import { Opener, type Record, Sealer } from "../../src/channel/records.ts";
import { LIMITS } from "../../src/channel/wire.ts";
import { bytes, hex } from "./hex.ts";
import { outgoing } from "./outgoing.ts";
import { PythonHost } from "./python_host.ts";

const SESSION = { sessionId: "01890a5d-ac96-774b-bcce-b302099a8057", hostId: "01890a5d-ac97-7c0a-9f2e-1d2c3b4a5968" };
const python = new PythonHost();
after(() => python.stop());

/** A host that says anything: the bare handshake and records. */
class Peer {
  readonly end: DeviceEnd;
  #sealer!: Sealer;
  #opener!: Opener;

  private constructor(end: DeviceEnd) {
    this.end = end;
  }

  /** With a device that was never paired. */
  static async make(inputWindow = 64 * 1024): Promise<Peer> {
    const { gives: hostKey } = await python.call("start");
    const end = new DeviceEnd({
      ...SESSION,
      channelKey: await newChannelKey(),
      hostChannelKey: bytes(hostKey),
      profile: "shell",
      sessionUser: "alex-shell",
      term: "xterm-256color",
      limits: { handshakeTimeout: 10, inputWindow },
    });
    return new Peer(end);
  }

  /** With a channel that is open. */
  static async opened(inputWindow?: number): Promise<Peer> {
    const peer = await Peer.make(inputWindow);
    await peer.end.receive(await peer.message2(), 1);
    return peer;
  }

  /** Pairs, and answers: a new lineage, or the resume of it. */
  async message2(resume: "new" | "exact" = "new", position = 0): Promise<Bytes> {
    await this.end.pair("token", 80, 24, 0);
    const [message1] = await outgoing(this.end);
    const { gives } = await python.call("peer", {
      session_id: SESSION.sessionId,
      host_id: SESSION.hostId,
      message1: hex(message1!),
      resume,
      lineage: "00".repeat(16),
      output_position: position,
      input_received: 0,
    });
    this.#sealer = new Sealer(new CipherState(bytes(gives.to_device)));
    this.#opener = new Opener(new CipherState(bytes(gives.to_host)));
    return bytes(gives.message2);
  }

  seal(record: Record): Promise<Bytes> {
    return this.#sealer.seal(record);
  }

  async say(record: Record) {
    return this.end.receive(await this.seal(record), 2);
  }

  async hear(): Promise<(Record | null)[]> {
    const heard = [];
    for (const message of await outgoing(this.end)) heard.push(await this.#opener.open(message));
    return heard;
  }
}

/** Long enough for WebCrypto to have a message in its hands, too short for it to be done. */
async function underWay(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await undefined;
}

function data(text: string): Record {
  return { kind: "data", data: utf8(text) };
}

test("a burst is opened in its order, and caughtUp waits for all of it", async () => {
  const peer = await Peer.opened();
  const shown: string[] = [];
  for (let number = 0; number < 200; number++) {
    // The large ones take longer to open.
    const record = number % 3 ? data(`${number}`) : data(`${number}`.padEnd(20_000));
    void peer.end.receive(await peer.seal(record), 2).then(([event]) => {
      assert.ok(event?.kind === "output");
      shown.push(Buffer.from(event.data).toString().trim());
    });
  }
  await peer.end.caughtUp();
  assert.deepEqual(shown, Array.from({ length: 200 }, (_, number) => `${number}`));
});

test("what goes out leaves in the order of the calls", async () => {
  const peer = await Peer.opened();
  await peer.hear();
  const taken: Promise<Bytes[]>[] = [];
  for (let number = 0; number < 50; number++) {
    peer.end.write(new Uint8Array(number % 2 ? 1 : 1200).fill(number));
    taken.push(outgoing(peer.end));
  }
  const order: number[] = [];
  await Promise.all(taken.map((each, index) => each.then(() => order.push(index))));
  assert.deepEqual(order, [...order].sort((one, other) => one - other));
});

test("what a lost pairing still opens is not shown", async () => {
  for (const begun of [true, false]) {
    const peer = await Peer.opened();
    await peer.say(data("shown"));
    peer.end.processed(5);
    const late = peer.end.receive(await peer.seal(data(", late")), 2);
    if (begun) await underWay();
    peer.end.unpaired();
    assert.deepEqual(await late, []);
    await peer.end.receive(await peer.message2("exact", 5), 3);
    assert.deepEqual(await peer.say(data(", late")), [{ kind: "output", data: utf8(", late") }]);
  }
});

test("what fails to open behind the end of its pairing is nobody's failure", async () => {
  for (const opened of [true, false]) {
    const peer = await Peer.make();
    const message2 = await peer.message2();
    if (opened) await peer.end.receive(message2, 1);
    const forged = peer.end.receive(new Uint8Array(100), 2);
    await underWay();
    peer.end.unpaired();
    assert.deepEqual(await forged, []);
  }
});

test("message 2 that opens too late opens no channel", async () => {
  const peer = await Peer.make();
  const answered = peer.end.receive(await peer.message2(), 1);
  await underWay();
  peer.end.unpaired();
  assert.deepEqual(await answered, []);
  assert.equal(peer.end.open, false);
  assert.equal(peer.end.openedOnce, false);
});

test("an answer to a message 1 that is not made yet is the relay's fault", async () => {
  const peer = await Peer.make();
  const pairing = peer.end.pair("token", 80, 24, 0);
  await assert.rejects(peer.end.receive(new Uint8Array(100), 0), ChannelError);
  await pairing;
  assert.deepEqual(await outgoing(peer.end), []);
});

test("what was sealed for a lost pairing is not given out, and is sent again", async () => {
  const peer = await Peer.opened();
  await peer.say({ kind: "ack", position: 0 });
  peer.end.write(bytes("6b657973"));
  const sealing = outgoing(peer.end);
  peer.end.unpaired();
  assert.deepEqual(await sealing, []);
  await peer.end.receive(await peer.message2("exact"), 3);
  assert.deepEqual(await peer.hear(), [
    { kind: "ack", position: 0 },
    { kind: "data", data: bytes("6b657973") },
  ]);
});

test("a failed channel throws once, however much is behind it", async () => {
  const peer = await Peer.opened();
  const good = await peer.seal(data("good"));
  const outcomes = await Promise.allSettled(
    [new Uint8Array(40), good, new Uint8Array(40)].map((message) => peer.end.receive(message, 2)),
  );
  assert.deepEqual(outcomes.map((outcome) => outcome.status), ["rejected", "fulfilled", "fulfilled"]);
  assert.deepEqual(await outgoing(peer.end), []);
});

test("output beyond the bound fails the channel, an exit needs no window", async () => {
  const peer = await Peer.opened();
  const piece = new Uint8Array(32 * 1024);
  for (let sent = 0; sent < LIMITS.OUTPUT_WINDOW_BYTES; sent += piece.length) await peer.say({ kind: "data", data: piece });
  peer.end.processed(piece.length);
  await peer.say({ kind: "data", data: piece });
  await peer.say({ kind: "exit", status: 0 });
  const another = await Peer.opened();
  for (let sent = 0; sent < LIMITS.OUTPUT_WINDOW_BYTES; sent += piece.length) await another.say({ kind: "data", data: piece });
  await assert.rejects(another.say(data("x")), /window/);
});

test("no bound is used up by what was opened and shown", async () => {
  const peer = await Peer.opened();
  const piece = new Uint8Array(60_000);
  for (let sent = 0; sent < 3 * LIMITS.OUTPUT_WINDOW_BYTES; sent += piece.length) {
    await peer.say({ kind: "data", data: piece });
    peer.end.processed(piece.length);
  }
  assert.equal(peer.end.open, true);
});

test("repaints beyond the bound fail the channel", async () => {
  const peer = await Peer.opened();
  const piece: Record = { kind: "repaint", data: new Uint8Array(LIMITS.REPAINT_TOTAL_BYTES / 32), last: true };
  for (let count = 0; count < 32; count++) await peer.say(piece);
  await assert.rejects(peer.say({ kind: "repaint", data: bytes("78"), last: true }), /repaint/);
});

test("a relay that says more than any window holds is not listened to", async () => {
  const peer = await Peer.opened();
  const message = new Uint8Array(65_000);
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => peer.end.receive(message, 2)));
  const failures = outcomes.filter((outcome) => outcome.status === "rejected");
  assert.ok(failures.length > 0 && failures.every(({ reason }) => /window/.test(String(reason))));
  assert.equal(peer.end.open, false);
});

test("output is acknowledged each quarter of what waits and when all is shown", async () => {
  const peer = await Peer.opened();
  assert.deepEqual(await peer.hear(), [{ kind: "ack", position: 0 }]);
  await peer.say({ kind: "data", data: new Uint8Array(100) });
  peer.end.processed(24);
  assert.deepEqual(await peer.hear(), []);
  peer.end.processed(1);
  assert.deepEqual(await peer.hear(), [{ kind: "ack", position: 25 }]);
  peer.end.processed(75);
  assert.deepEqual(await peer.hear(), [{ kind: "ack", position: 100 }]);
  assert.throws(() => peer.end.processed(1), LocalError);
});

test("megabytes of a paste go through a small window and leave nothing behind", async () => {
  const peer = await Peer.opened(1000);
  const paste = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251);
  for (let start = 0; start < paste.length; start += 7_000) peer.end.write(paste.subarray(start, start + 7_000));
  const arrived: Bytes[] = [];
  for (let position = 0; position < paste.length; ) {
    for (const record of await peer.hear()) {
      if (record?.kind !== "data") continue;
      arrived.push(record.data);
      position += record.data.length;
    }
    await peer.say({ kind: "ack", position });
  }
  assert.ok(Buffer.concat(arrived).equals(paste));
  assert.equal(peer.end.pendingInput, 0);
});

test("a host key that is none is refused, and the device may try again", async () => {
  const peer = new DeviceEnd({
    ...SESSION,
    channelKey: await newChannelKey(),
    hostChannelKey: new Uint8Array(32),
    profile: "shell",
    sessionUser: "alex-shell",
    term: "xterm",
    limits: { handshakeTimeout: 10, inputWindow: 10 },
  });
  await assert.rejects(peer.pair("token", 80, 24, 0), ChannelError);
  await assert.rejects(peer.receive(new Uint8Array(48), 0), /outside/);
  assert.equal(peer.deadline(), null);
});
