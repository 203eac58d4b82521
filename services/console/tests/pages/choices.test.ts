import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, obstacle } from "../../src/pages/choices.ts";
import type { HostRow } from "../../src/pages/rows.ts";

const HOST: HostRow = {
  host_id: "h",
  name: "lab-1",
  state: "active",
  disabled_reason: null,
  presence: "online",
  profiles: { shell: ["alex", "sam"], logs: ["sam"] },
  channel_key: "key",
  fingerprint: "SHA256:x",
  owner: true,
  session_users: [],
  last_seen_at: null,
};

test("an owner has every account of every profile, a grant only what it names", () => {
  assert.equal(choicesOf(HOST).length, 3);
  const granted = { ...HOST, owner: false, session_users: ["sam"] };
  assert.deepEqual(choicesOf(granted), [
    { profile: "shell", sessionUser: "sam" },
    { profile: "logs", sessionUser: "sam" },
  ]);
  assert.deepEqual(choicesOf({ ...HOST, owner: false }), []);
});

test("what stands in the way is said, and nothing stands in the way of a host that is there", () => {
  assert.equal(obstacle(HOST, "online"), null);
  assert.match(obstacle({ ...HOST, state: "pending", channel_key: null }, "offline") ?? "", /paired/);
  assert.match(obstacle({ ...HOST, state: "pending" }, "online") ?? "", /confirm/);
  assert.equal(obstacle({ ...HOST, state: "disabled", disabled_reason: "duplicate_connection" }, "online"), "Disabled: two machines have its key.");
  assert.equal(obstacle({ ...HOST, state: "disabled", disabled_reason: "operator" }, "online"), "Disabled by an owner or operator.");
  assert.match(obstacle({ ...HOST, owner: false }, "online") ?? "", /no right/);
  assert.match(obstacle(HOST, "offline") ?? "", /offline/);
  assert.match(obstacle(HOST, "lost") ?? "", /lost/);
  assert.match(obstacle({ ...HOST, owner: false, session_users: ["robin"] }, "online") ?? "", /no account/);
});
