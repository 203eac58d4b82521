/** Close codes that are known, and those that nobody knows. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { retryOf, textOf } from "../../src/channel/wire.ts";

test("a close code says whether to come back", () => {
  assert.deepEqual([1000, 1006, 1011, 4103, 4107].map(retryOf), ["never", "soon", "later", "never", "attach"]);
  assert.deepEqual([1001, 1015, 3000, 4999].map(retryOf), ["soon", "soon", "never", "never"]);
});

test("every close code has words", () => {
  assert.equal(textOf(4103), "the session goes on on another device");
  assert.equal(textOf(4999), "the connection was closed with code 4999");
});
