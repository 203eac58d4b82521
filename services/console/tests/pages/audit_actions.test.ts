import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { ACTIONS } from "../../src/pages/audit_actions.ts";

test("the audit's filter offers the actions that the API knows", async () => {
  const api = await readFile("../../docs/api/openapi.yaml", "utf8");
  const listed = /name: action\n[\s\S]*?enum:\n((?:\s+- \S+\n)+)/.exec(api)?.[1]?.match(/[a-z_]+\.[a-z_]+/g);
  assert.deepEqual(listed, [...ACTIONS]);
});
