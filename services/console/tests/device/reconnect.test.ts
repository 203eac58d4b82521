/** The reconnect rule goes every way that the rule of Python goes. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import wire from "../../src/channel/wire.json" with { type: "json" };
import { type Effect, type Event, type Phase, type State, deadline, start, step } from "../../src/device/reconnect.ts";
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

const UP: readonly Event[] = [{ kind: "accepted" }, { kind: "paired" }];
/** The shortest way into each phase. */
const WAYS: { readonly [phase in Phase]: readonly Event[] } = {
  dialling: [],
  up: UP,
  waiting: [...UP, { kind: "lost", code: 1006 }],
  attaching: [...UP, { kind: "lost", code: 4106 }, { kind: "now" }],
  replaced: [...UP, { kind: "lost", code: 4103 }],
  stopped: [{ kind: "lost", code: 1000 }],
};

/** Into a phase, and one event of a kind there. */
function shortWalk(phase: Phase, kind: Event["kind"], chance: () => number): Walk {
  const events = [...WAYS[phase], randomEvent(kind, 100, chance)];
  return { now: 100, life: 60, steps: events.map((event) => ({ event, now: 100, chance: chance() })) };
}

/** Events as they come in life: where one leads nowhere, the same rule must say so too. */
function randomWalk(chance: () => number): Walk {
  let now = 1000 * chance();
  const first = { now, life: 100 * chance() };
  const steps = Array.from({ length: 40 }, () => {
    now += one([0.1, 1, 20, 70], chance) * chance();
    const kind = one([...KINDS, "accepted", "paired", "passed"] as const, chance);
    return { event: randomEvent(kind, now, chance), now, chance: chance() };
  });
  return { ...first, steps };
}

function randomEvent(kind: Event["kind"], now: number, chance: () => number): Event {
  switch (kind) {
    case "lost":
      return { kind, code: one(CODES, chance) };
    case "declined":
      return { kind, code: one(REFUSALS, chance) };
    case "attached":
      return { kind, tokenUntil: now + 60 * chance() };
    case "refused":
      return { kind, code: one(PROBLEMS, chance), retryAfter: one([0, 0, 30], chance) };
    default:
      return { kind };
  }
}

function one<Item>(items: readonly Item[], chance: () => number): Item {
  return items[Math.floor(items.length * chance())]!;
}

test("every walk is that of Python", () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  const chance = chanceOf(seed);
  const phases = Object.keys(WAYS) as Phase[];
  const walks = [
    ...phases.flatMap((phase) => KINDS.map((kind) => shortWalk(phase, kind, chance))),
    ...Array.from({ length: 400 }, () => randomWalk(chance)),
  ];
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
  const possible = phases.flatMap((phase) => KINDS.map((kind) => `${phase} ${kind}`));
  assert.deepEqual(possible.filter((each) => !seen.has(each)), []);
});
