/** Frames of the stream socket: what is read, and what is refused. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameError } from "../../src/channel/errors.ts";
import { SIDE_READY, decodeStreamFrame, encodeStreamIdentify } from "../../src/channel/frames.ts";

const CHALLENGE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

test("every frame of the relay", () => {
  assert.deepEqual(decodeStreamFrame(`{"type":"stream.hello","challenge":"${CHALLENGE}"}`), {
    type: "stream.hello",
    challenge: Uint8Array.from({ length: 32 }, (_, index) => index),
  });
  assert.deepEqual(decodeStreamFrame('{"type":"side.accepted"}'), { type: "side.accepted" });
  assert.deepEqual(decodeStreamFrame(' {"type" : "side.unpaired"}\n'), { type: "side.unpaired" });
  const paired = { type: "side.paired", sessionToken: "a.b:c\"\\" };
  assert.deepEqual(decodeStreamFrame(JSON.stringify({ session_token: "a.b:c\"\\", type: "side.paired" })), paired);
  for (const without of ['{"type":"side.paired"}', '{"type":"side.paired","session_token":null}']) {
    assert.deepEqual(decodeStreamFrame(without), { type: "side.paired", sessionToken: null });
  }
});

test("every other text is refused, and never quoted", () => {
  const refused = [
    "",
    "secret",
    "[]",
    "null",
    "{}",
    '"side.accepted"',
    '{"type":"side.ready"}',
    '{"type":"host.hello"}',
    '{"type":["side.accepted"]}',
    '{"type":"side.accepted","secret":1}',
    '{"type":"side.accepted","type":"side.accepted"}',
    '{"type":"side.accepted","ty\\u0070e":"side.unpaired"}',
    '{"type":"side.accepted","__proto__":null}',
    '{"type":"side.accepted","more":{"a":1}}',
    '{"type":"stream.hello"}',
    '{"type":"stream.hello","challenge":null}',
    `{"type":"stream.hello","challenge":"${CHALLENGE.slice(0, -1)}"}`,
    `{"type":"stream.hello","challenge":"${CHALLENGE.replace("h8=", "h9=")}"}`,
    `{"type":"stream.hello","challenge":" ${CHALLENGE}"}`,
    `{"type":"stream.hello","challenge":"${CHALLENGE.slice(4)}"}`,
    '{"type":"side.paired","session_token":""}',
    '{"type":"side.paired","session_token":1}',
    JSON.stringify({ type: "side.paired", session_token: "x".repeat(4097) }),
    '{"type":"side.accepted"} {}',
    '\ufeff{"type":"side.accepted"}',
  ];
  for (const text of refused) {
    assert.throws(
      () => decodeStreamFrame(text),
      (error: unknown) => error instanceof FrameError && error.code === 4105 && !error.message.includes("secret"),
      text,
    );
  }
});

test("what a device says", () => {
  assert.deepEqual(JSON.parse(encodeStreamIdentify("token", Uint8Array.of(1, 2, 3))), {
    type: "stream.identify",
    stream_token: "token",
    signature: "AQID",
  });
  assert.equal(SIDE_READY, '{"type":"side.ready"}');
});
