/** Records at their bounds; the shared conversations have the ordinary and the malformed ones. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChannelError, LocalError } from "../../src/channel/errors.ts";
import { CipherState } from "../../src/channel/noise.ts";
import {
  DATA_BYTES,
  NOTICE_BYTES,
  Opener,
  REPAINT_BYTES,
  type Record,
  Sealer,
  decodeRecord,
  encodeRecord,
} from "../../src/channel/records.ts";
import { LIMITS } from "../../src/channel/wire.ts";
import { bytes, hex } from "./hex.ts";

test("every record at its bounds is read as it was written", () => {
  const records: Record[] = [
    { kind: "data", data: new Uint8Array(1) },
    { kind: "data", data: new Uint8Array(DATA_BYTES) },
    { kind: "ack", position: 0 },
    { kind: "ack", position: Number.MAX_SAFE_INTEGER },
    { kind: "resize", columns: 0, rows: 65535 },
    { kind: "exit", status: 255 },
    { kind: "repaint", data: new Uint8Array(0), last: false },
    { kind: "repaint", data: new Uint8Array(REPAINT_BYTES), last: true },
    { kind: "ping" },
    { kind: "pong" },
    { kind: "notice", text: "x" },
    { kind: "notice", text: "\u00e9".repeat(NOTICE_BYTES / 2) },
  ];
  for (const record of records) assert.deepEqual(decodeRecord(encodeRecord(record)), record);
});

test("numbers are big-endian", () => {
  assert.equal(hex(encodeRecord({ kind: "ack", position: 0x01_0203_0405_0607 })), "020001020304050607");
  assert.equal(hex(encodeRecord({ kind: "resize", columns: 0x0102, rows: 0x0304 })), "0301020304");
});

test("a value outside its bounds is our own fault", () => {
  const records: Record[] = [
    { kind: "data", data: new Uint8Array(0) },
    { kind: "data", data: new Uint8Array(DATA_BYTES + 1) },
    { kind: "ack", position: -1 },
    { kind: "ack", position: 2 ** 53 },
    { kind: "resize", columns: 65536, rows: 1 },
    { kind: "resize", columns: 1, rows: 1.5 },
    { kind: "exit", status: 256 },
    { kind: "repaint", data: new Uint8Array(REPAINT_BYTES + 1), last: true },
    { kind: "notice", text: "" },
    { kind: "notice", text: "\u00e9".repeat(NOTICE_BYTES / 2) + "x" },
  ];
  for (const record of records) assert.throws(() => encodeRecord(record), LocalError);
});

test("a position that no number holds exactly is refused", () => {
  assert.throws(() => decodeRecord(bytes("020020000000000000")), ChannelError);
  assert.throws(() => decodeRecord(bytes("02ffffffffffffffff")), ChannelError);
});

test("a message of an impossible length is not even opened", async () => {
  const [sealed, opened] = [new CipherState(new Uint8Array(32)), new CipherState(new Uint8Array(32))];
  const message = await sealed.encrypt(new Uint8Array(LIMITS.RECORD_BYTES + 1).fill(0x90));
  await assert.rejects(new Opener(opened).open(message), ChannelError);
  assert.equal(opened.nonce, 0);
});

test("keys change together after every few records", async () => {
  const key = bytes("07".repeat(32));
  const [sealer, opener] = [new Sealer(new CipherState(key), 3), new Opener(new CipherState(key), 3)];
  const records: Record[] = Array.from({ length: 10 }, (_, position) => ({ kind: "ack", position }));
  const messages = await Promise.all(records.map((record) => sealer.seal(record)));
  for (const [index, message] of messages.entries()) assert.deepEqual(await opener.open(message), records[index]);
});
