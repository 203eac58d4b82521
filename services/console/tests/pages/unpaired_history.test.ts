import assert from "node:assert/strict";
import { test } from "node:test";

import type { NodeRow } from "../../src/pages/rows.ts";
import { type Look, looked } from "../../src/pages/unpaired_history.ts";

function node(id: string, devices: number, hosts: number): NodeRow {
  return { node_id: id, unpaired_client: devices, unpaired_host: hosts } as NodeRow;
}

function added(history: readonly Look[]): object[] {
  return history.map((look) => Object.fromEntries(look.added));
}

test("a look says what was added since the one before, also over a restart and for a new node", () => {
  let history = looked([], [node("a", 5, 5)], 1);
  history = looked(history, [node("a", 6, 7)], 2);
  history = looked(history, [node("a", 1, 0), node("b", 9, 0)], 3);
  history = looked(history, [node("b", 9, 1)], 4);
  assert.deepEqual(added(history), [{ a: 0 }, { a: 3 }, { a: 1, b: 0 }, { b: 1 }]);
});

test("an hour is kept", () => {
  let history: readonly Look[] = [];
  for (let at = 0; at < 500; at++) history = looked(history, [node("a", at, 0)], at);
  assert.equal(history.length, 360);
  assert.equal(history[0]?.at, 140);
});
