import assert from "node:assert/strict";
import { test } from "node:test";

import type { Status } from "../../src/device/session_status.ts";
import { roundTrip, statusOf } from "../../src/pages/status_words.ts";

function word(status: Status): string {
  return statusOf({ kind: "running", status }).word;
}

test("a terminal is in one state, in a word", () => {
  assert.equal(statusOf({ kind: "attaching" }).word, "attaching");
  assert.equal(statusOf({ kind: "refused", error: null, why: "unconfirmed" }).word, "not attached");
  assert.equal(statusOf({ kind: "refused", error: null, why: "refused" }).word, "not attached");
  assert.equal(statusOf({ kind: "refused", error: null, why: "away" }).word, "reconnecting");
  assert.equal(statusOf({ kind: "refused", error: null, why: "over" }).word, "ended");
  assert.equal(word({ kind: "up", roundTrip: 0.01, waiting: 0 }), "connected");
  assert.equal(word({ kind: "connecting", cause: null, retryIn: null, waiting: 0 }), "connecting");
  assert.equal(word({ kind: "connecting", cause: "lost", retryIn: 3, waiting: 0 }), "reconnecting");
  assert.equal(word({ kind: "replaced" }), "on another device");
  assert.equal(word({ kind: "ended", exitStatus: 0, over: true, text: "" }), "ended");
});

test("an end that no exit explains is marked", () => {
  assert.equal(statusOf({ kind: "running", status: { kind: "ended", exitStatus: null, over: true, text: "revoked" } }).tone, "bad");
  assert.equal(statusOf({ kind: "running", status: { kind: "ended", exitStatus: 1, over: true, text: "" } }).tone, "quiet");
});

test("a round trip is told in milliseconds", () => {
  assert.deepEqual([null, 0.0004, 0.0126, 1.5].map(roundTrip), [null, "< 1 ms", "13 ms", "1500 ms"]);
});
