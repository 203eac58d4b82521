/** The handshake against published vectors, and what it refuses. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChannelError, LocalError } from "../../src/channel/errors.ts";
import { CipherState, Initiator, newChannelKey } from "../../src/channel/noise.ts";
import vectors from "../../../../docs/spec/vectors/noise_ik.json" with { type: "json" };
import { bytes, hex } from "./hex.ts";
import { keyPair } from "./keys.ts";

const LOW_ORDER_POINTS = [
  "00".repeat(32),
  "01" + "00".repeat(31),
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

type Vector = (typeof vectors.published.vectors)[number];

async function initiatorOf(vector: Vector): Promise<Initiator> {
  return new Initiator(
    await keyPair(vector.initiator_static),
    (await keyPair(vector.responder_static)).publicKey,
    bytes(vector.prologue),
    () => keyPair(vector.initiator_ephemeral),
  );
}

test("every published vector", async () => {
  assert.ok(vectors.published.vectors.length >= 4);
  for (const vector of vectors.published.vectors) {
    const initiator = await initiatorOf(vector);
    const [first, second, ...transport] = vector.messages;
    assert.equal(hex(await initiator.write(bytes(first!.payload))), first!.ciphertext);
    assert.equal(hex(await initiator.read(bytes(second!.ciphertext))), second!.payload);
    const { send, receive } = await initiator.split();
    assert.ok(transport.length >= 2);
    for (const [index, { payload, ciphertext }] of transport.entries()) {
      if (index % 2 === 0) assert.equal(hex(await send.encrypt(bytes(payload))), ciphertext);
      else assert.equal(hex(await receive.decrypt(bytes(ciphertext))), payload);
    }
  }
});

test("a changed message 2 does not open and changes nothing", async () => {
  const vector = vectors.published.vectors[0]!;
  const initiator = await initiatorOf(vector);
  await initiator.write(bytes(vector.messages[0]!.payload));
  const message2 = bytes(vector.messages[1]!.ciphertext);
  for (let index = 0; index < message2.length; index += 7) {
    const changed = message2.slice();
    changed[index]! ^= 0x80;
    await assert.rejects(initiator.read(changed), ChannelError);
  }
  await assert.rejects(initiator.read(message2.slice(0, 47)), ChannelError);
  await assert.rejects(initiator.read(new Uint8Array(65536)), ChannelError);
  assert.equal(hex(await initiator.read(message2)), vector.messages[1]!.payload);
});

test("an all-zero secret is refused", async () => {
  const device = await newChannelKey();
  for (const point of LOW_ORDER_POINTS) {
    await assert.rejects(new Initiator(device, bytes(point), bytes("")).write(bytes("")), ChannelError, point);
    const initiator = new Initiator(device, (await newChannelKey()).publicKey, bytes(""));
    await initiator.write(bytes(""));
    await assert.rejects(initiator.read(bytes(point + "00".repeat(16))), /key/, point);
  }
});

test("calls out of turn are our own fault", async () => {
  const initiator = new Initiator(await newChannelKey(), (await newChannelKey()).publicKey, bytes(""));
  await assert.rejects(initiator.read(new Uint8Array(48)), LocalError);
  await initiator.write(bytes(""));
  await assert.rejects(initiator.write(bytes("")), LocalError);
  await assert.rejects(initiator.split(), LocalError);
});

test("a channel key cannot be exported", async () => {
  assert.equal((await newChannelKey()).privateKey.extractable, false);
});

test("a forgery uses up no nonce", async () => {
  const [sender, receiver] = [new CipherState(new Uint8Array(32)), new CipherState(new Uint8Array(32))];
  const message = await sender.encrypt(bytes("6f6e65"));
  for (const forged of [bytes(""), message.slice(0, -1), new Uint8Array(message.length)]) {
    await assert.rejects(receiver.decrypt(forged), ChannelError);
  }
  assert.equal(hex(await receiver.decrypt(message)), "6f6e65");
  await assert.rejects(receiver.decrypt(message), ChannelError);
});

test("messages that are sealed at once have nonces in the order of the calls", async () => {
  const [sender, receiver] = [new CipherState(new Uint8Array(32)), new CipherState(new Uint8Array(32))];
  const sealed = Promise.all(["00", "01", "02", "03"].map((text, index) => {
    if (index === 2) sender.rekey();
    return sender.encrypt(bytes(text));
  }));
  for (const [index, message] of (await sealed).entries()) {
    if (index === 2) receiver.rekey();
    assert.equal(hex(await receiver.decrypt(message)), `0${index}`);
  }
});

test("the last nonce is never used for a message", async () => {
  const cipher = new CipherState(new Uint8Array(32));
  cipher.nonce = Number.MAX_SAFE_INTEGER;
  await assert.rejects(cipher.encrypt(bytes("00")), /used up/);
  await assert.rejects(cipher.decrypt(new Uint8Array(16)), /used up/);
});
