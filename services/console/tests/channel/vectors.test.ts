/** The shared conversations: the device's part, byte for byte. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { DeviceEnd } from "../../src/channel/device_end.ts";
import type { DeviceEvent } from "../../src/channel/device_events.ts";
import { RemoteError } from "../../src/channel/errors.ts";
import { CipherState } from "../../src/channel/noise.ts";
import { Opener, Sealer } from "../../src/channel/records.ts";
import vectors from "../../../../docs/spec/vectors/channel.json" with { type: "json" };
import { snakeCase } from "../snake_case.ts";
import { bytes, hex } from "./hex.ts";
import { keyPair } from "./keys.ts";
import { outgoing } from "./outgoing.ts";

interface Step {
  readonly end: string;
  readonly do: string;
  readonly with?: { readonly [name: string]: unknown };
  readonly gives?: unknown;
  readonly fails?: number;
  readonly then?: { readonly [name: string]: unknown };
}
type Conversation = (typeof vectors.conversations)[number];

for (const conversation of vectors.conversations) {
  test(`conversation: ${conversation.name}`, async () => {
    const end = await deviceOf(conversation);
    const told: { [name: string]: unknown } = {};
    for (const [index, step] of (conversation.steps as Step[]).entries()) {
      if (step.end !== "device") continue;
      const place = `step ${index}: ${step.do}`;
      assert.deepEqual(await outcome(end, step, conversation.frames), { gives: step.gives, fails: step.fails }, place);
      assert.deepEqual(saidOf(end), Object.assign(told, step.then), place);
    }
  });
}

test("a direction across its first REKEY", async () => {
  const { key, first, frames } = vectors.rekey;
  const [sealed, opened] = [new CipherState(bytes(key)), new CipherState(bytes(key))];
  sealed.nonce = opened.nonce = first;
  const [sealer, opener] = [new Sealer(sealed), new Opener(opened)];
  const records = frames.map((_, number) => ({ kind: "data" as const, data: Uint8Array.of(number) }));
  assert.deepEqual((await Promise.all(records.map((record) => sealer.seal(record)))).map(hex), frames);
  for (const [number, frame] of frames.entries()) assert.deepEqual(await opener.open(bytes(frame)), records[number]);
});

async function deviceOf(conversation: Conversation): Promise<DeviceEnd> {
  const ephemerals = conversation.ephemerals.device.values();
  return new DeviceEnd({
    channelKey: await keyPair(conversation.device_key),
    hostChannelKey: (await keyPair(conversation.host_key)).publicKey,
    sessionId: conversation.session_id,
    hostId: conversation.host_id,
    profile: conversation.profile,
    sessionUser: conversation.session_user,
    term: conversation.term,
    limits: {
      handshakeTimeout: conversation.limits.handshake_timeout,
      inputWindow: conversation.limits.input_window,
    },
    newEphemeral: () => keyPair(ephemerals.next().value!),
  });
}

/** What a call gives, as the file has it. */
async function outcome(end: DeviceEnd, step: Step, frames: readonly string[]) {
  try {
    return { gives: await called(end, step, frames), fails: undefined };
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    return { gives: undefined, fails: error.code };
  }
}

async function called(end: DeviceEnd, step: Step, frames: readonly string[]): Promise<unknown> {
  const text = (name: string) => step.with![name] as string;
  const number = (name: string) => step.with![name] as number;
  switch (step.do) {
    case "pair":
      return end.pair(text("session_token"), number("columns"), number("rows"), number("now"));
    case "unpaired":
      return end.unpaired();
    case "receive":
      return (await end.receive(bytes(frames[number("message")]!), number("now"))).map(written);
    case "take_outgoing": {
      const sent = (await outgoing(end)).map(hex);
      return sent.map((frame) => {
        assert.ok(frames.includes(frame), "a frame that nobody recorded");
        return frames.indexOf(frame);
      });
    }
    case "write":
      return end.write(bytes(text("data")));
    case "drop_unsent":
      return end.dropUnsent();
    case "resize":
      return end.resize(number("columns"), number("rows"));
    case "processed":
      return end.processed(number("count"));
    case "flush":
      return end.flush();
    case "ping":
      return end.ping(number("now"));
    default:
      throw new Error(`the file has a call that this test does not know: ${step.do}`);
  }
}

function saidOf(end: DeviceEnd) {
  return {
    open: end.open,
    opened_once: end.openedOnce,
    pending_input: end.pendingInput,
    unsent_input: end.unsentInput,
    round_trip: end.roundTrip,
  };
}

/** An event as Python writes it. */
function written({ kind, ...fields }: DeviceEvent) {
  const named = Object.entries(fields).map(([name, value]) => [name, value instanceof Uint8Array ? hex(value) : value]);
  return { event: kind[0]!.toUpperCase() + kind.slice(1), ...(snakeCase(Object.fromEntries(named)) as object) };
}
