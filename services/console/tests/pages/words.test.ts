import assert from "node:assert/strict";
import { test } from "node:test";

import { ago, bytes, lasting, wordsOf } from "../../src/pages/words.ts";

test("a length of time has its largest unit", () => {
  const lengths = [0, 59, 60, 3599, 3600, 86_399, 86_400, 900_000];
  assert.deepEqual(lengths.map(lasting), ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 d", "10 d"]);
});

test("an instant is so long ago", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  assert.equal(ago(null, now), "never");
  assert.equal(ago("2026-01-01T23:59:58Z", now), "now");
  assert.equal(ago("2026-01-02T00:00:03Z", now), "now"); // the relay's clock may be ahead
  assert.equal(ago("2026-01-01T23:00:00Z", now), "1 h ago");
});

test("bytes are counted in decimal units", () => {
  const counts = [0, 999, 1000, 1550, 999_949, 123_456_789, 50_000_000, 3e15];
  assert.deepEqual(counts.map(bytes), ["0 B", "999 B", "1.0 kB", "1.6 kB", "999 kB", "123 MB", "50.0 MB", "3000 TB"]);
});

test("errors are told in words", () => {
  const cancelled = Object.assign(new Error("raw"), { name: "NotAllowedError" });
  assert.match(wordsOf(cancelled), /^The passkey was not used/);
  assert.equal(wordsOf(new Error("the relay is out of reach")), "The relay is out of reach");
  assert.equal(wordsOf(new TypeError("")), "TypeError");
});
