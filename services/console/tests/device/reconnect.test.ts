/** The reconnect rule goes every way that the rule of Python goes. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import wire from "../../src/channel/wire.json" with { type: "json" };
import { type Effect, type Event, type State, deadline, start, step } from "../../src/device/reconnect.ts";
import { chanceOf } from "../chance.ts";
import { snakeCase } from "../snake_case.ts";

const CODES = [...Object.keys(wire.close_codes).map(Number), 1001, 1999, 2000, 4000, 4999];
const PROBLEMS = [
  "host_unavailable",
  "idempotency_running",
  "internal",
  "rate_limited",
  "unavailable",
  "replaced",
  "session_closed",
];
const KINDS: readonly Event["kind"][] = [
  "accepted",
  "paired",
  "lost",
  "declined",
  "unreached",
  "attached",
  "refused",
  "passed",
  "now",
  "woke",
];
const REFUSALS = ["token_expired", "token_replayed", "session_unknown", "profile_mismatch"];

interface Walk {
  readonly now: number;
  readonly life: number;
  readonly steps: readonly { readonly event: Event; readonly now: number; readonly chance: number }[];
}

/** Events as they come in life: where one leads nowhere, the same rule must say so too. */
function randomWalk(chance: () => number): Walk {
  const one = <Item>(items: readonly Item[]): Item => items[Math.floor(items.length * chance())]!;
  let now = 1000 * chance();
  const event = (): Event => {
    const kind = one([...KINDS, "accepted", "paired", "passed"] as const);
    switch (kind) {
      case "lost":
        return { kind, code: one(CODES) };
      case "declined":
        return { kind, code: one(REFUSALS) };
      case "attached":
        return { kind, tokenUntil: now + 60 * chance() };
      case "refused":
        return { kind, code: one(PROBLEMS), retryAfter: one([0, 0, 30]) };
      default:
        return { kind };
    }
  };
  const first = { now, life: 100 * chance() };
  const steps = Array.from({ length: 40 }, () => {
    now += one([0.1, 1, 20, 70]) * chance();
    return { event: event(), now, chance: chance() };
  });
  return { ...first, steps };
}

test("every walk is that of Python", () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const chance = chanceOf(seed);
  const walks = Array.from({ length: 400 }, () => randomWalk(chance));
  const python = spawnSync(process.env["PYTHON"] ?? "python3", ["tests/device/reconnect_rule.py"], {
    input: JSON.stringify(snakeCase(walks)),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  assert.equal(python.status, 0, python.stderr);
  const seen = new Set<string>();
  for (const [index, expected] of (JSON.parse(python.stdout) as unknown[][]).entries()) {
    const { now: begin, life, steps } = walks[index]!;
    let state: State = start(begin, life);
    let effect: Effect | null;
    for (const [number, { event, now, chance: jitter }] of steps.entries()) {
      const before = state.phase;
      [state, effect] = step(state, event, now, jitter);
      assert.deepEqual(
        snakeCase([state, effect, deadline(state)]),
        expected[number],
        `SEED=${seed}, walk ${index}, step ${number}: ${JSON.stringify(event)}`,
      );
      seen.add(`${before} ${event.kind}`);
    }
  }
  const phases = ["dialling", "attaching", "up", "waiting", "replaced", "stopped"];
  const possible = phases.flatMap((phase) => KINDS.map((kind) => `${phase} ${kind}`));
  assert.deepEqual(possible.filter((each) => !seen.has(each)), []);
});
