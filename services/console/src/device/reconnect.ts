/**
 * When a device dials again, asks for a new stream token, waits for its person, or stops: the pure reconnect rule.
 *
 * No time, no chance and no socket in here: the first two are arguments, the last is the shell's business. The same rule as
 * `bothy_device/reconnect.py`.
 */

import { BACKOFF, retryOf } from "../channel/index.ts";

const REPLACED = 4103;
const RESTART = 1012;

/** Problem codes of an attach that pass by themselves; every other one is final. */
export const LATER: ReadonlySet<string> = new Set(["host_unavailable", "idempotency_running", "internal", "rate_limited", "unavailable"]);
/** Refusals by the host that a new stream token heals. */
const ATTACH = new Set(["token_expired", "token_replayed"]);

export type Phase = "dialling" | "attaching" | "up" | "waiting" | "replaced" | "stopped";

/** All that the rule remembers. Instants in steady seconds. */
export interface State {
  readonly phase: Phase;
  /** When the stream token is too old. */
  readonly tokenUntil: number;
  /** The terminal was reached before. Until then only the first stream token is used: an opening that failed has ended. */
  readonly reached: boolean;
  /** The stream token is of no more use, whatever its age. */
  readonly attach: boolean;
  readonly tries: number;
  /** When to try next; for `waiting`. */
  readonly due: number;
  readonly pairedAt: number | null;
  /** The host did not know the session; a second time it is final. */
  readonly doubted: boolean;
}

export type Event =
  | { readonly kind: "accepted" }
  | { readonly kind: "paired" }
  | { readonly kind: "lost"; readonly code: number }
  | { readonly kind: "declined"; readonly code: string }
  | { readonly kind: "unreached" }
  | { readonly kind: "attached"; readonly tokenUntil: number }
  | { readonly kind: "refused"; readonly code: string; readonly retryAfter: number }
  | { readonly kind: "passed" }
  | { readonly kind: "now" }
  | { readonly kind: "woke" };

export type Effect = { readonly kind: "dial" } | { readonly kind: "attach"; readonly take: boolean } | { readonly kind: "stop" };

type Step = readonly [State, Effect | null];

/** The first stream token was just received and lives `life` seconds: dial. */
export function start(now: number, life: number): State {
  return {
    phase: "dialling",
    tokenUntil: now + life,
    reached: false,
    attach: false,
    tries: 0,
    due: 0,
    pairedAt: null,
    doubted: false,
  };
}

/** When `passed` is due. */
export function deadline(state: State): number | null {
  return state.phase === "waiting" ? state.due : null;
}

/** One event. `chance` is a fresh random number from 0 up to 1, used for jitter only. */
export function step(state: State, event: Event, now: number, chance: number): Step {
  const { phase } = state;
  switch (event.kind) {
    case "accepted":
      return phase === "dialling" ? [{ ...state, phase: "up", pairedAt: null }, null] : [state, null];
    case "paired":
      return phase === "up" ? [{ ...state, pairedAt: now, reached: true, doubted: false }, null] : [state, null];
    case "lost":
      if (phase !== "dialling" && phase !== "up") return [state, null];
      return lost(rested(state, now), event.code, now, chance);
    case "declined":
      return phase === "up" ? declined(state, event.code, now, chance) : [state, null];
    case "unreached":
      if (phase !== "dialling" && phase !== "attaching") return [state, null];
      return state.reached ? wait(state, now, BACKOFF.soon, chance) : stop(state);
    case "attached":
      if (phase !== "attaching") return [state, null];
      return [{ ...state, phase: "dialling", tokenUntil: event.tokenUntil, attach: false }, { kind: "dial" }];
    case "refused":
      if (phase !== "attaching") return [state, null];
      if (event.code === "replaced") return [{ ...state, phase: "replaced" }, null];
      return LATER.has(event.code) ? wait(state, now, BACKOFF.later, chance, event.retryAfter) : stop(state);
    case "passed":
      return phase === "waiting" && now >= state.due ? attempt(state, now) : [state, null];
    case "now":
      if (phase === "waiting") return attempt(state, now);
      if (phase !== "replaced") return [state, null];
      return [{ ...state, phase: "attaching", tries: 0 }, { kind: "attach", take: true }];
    case "woke":
      return phase === "replaced" || phase === "stopped" ? [state, null] : attempt({ ...state, tries: 0 }, now);
  }
}

function rested(state: State, now: number): State {
  const long = state.pairedAt !== null && now - state.pairedAt >= BACKOFF.settle;
  return long ? { ...state, tries: 0 } : state;
}

function lost(state: State, code: number, now: number, chance: number): Step {
  if (code === REPLACED && state.reached) return [{ ...state, phase: "replaced" }, null];
  switch (retryOf(code)) {
    case "never":
    case "wait":
      return stop(state);
    case "later":
      return wait(state, now, BACKOFF.later, chance);
    case "attach":
      return wait({ ...state, attach: true }, now, BACKOFF.soon, chance);
    case "soon": {
      // A node that leaves sends all its devices at once: their first try is spread over the whole second.
      const low = code === RESTART && state.tries === 0 ? 0 : (BACKOFF.soon[0] ?? 0);
      return wait(state, now, [low, BACKOFF.soon[1] ?? 1], chance);
    }
  }
}

function declined(state: State, code: string, now: number, chance: number): Step {
  const unknown = code === "session_unknown";
  if (ATTACH.has(code) || (unknown && !state.doubted)) {
    return wait({ ...state, attach: true, doubted: unknown }, now, BACKOFF.soon, chance);
  }
  return stop(state);
}

function wait(state: State, now: number, first: readonly number[], chance: number, atLeast = 0): Step {
  if (state.attach && !state.reached) return stop(state);
  const due = now + atLeast + delay(first, state.tries, chance);
  return [{ ...state, phase: "waiting", due, tries: state.tries + 1 }, null];
}

/** Uniform between low and high, both doubled for each vain try; at the cap they shrink together, so that clients stay spread. */
function delay(first: readonly number[], tries: number, chance: number): number {
  const [low = 0, high = 1] = first;
  const stretch = Math.min(2 ** Math.min(tries, 32), Math.max(BACKOFF.cap / high, 1));
  return (low + chance * (high - low)) * stretch;
}

function attempt(state: State, now: number): Step {
  if (!state.attach && now < state.tokenUntil) return [{ ...state, phase: "dialling" }, { kind: "dial" }];
  if (!state.reached) return stop(state);
  return [{ ...state, phase: "attaching", attach: true }, { kind: "attach", take: false }];
}

function stop(state: State): Step {
  return [{ ...state, phase: "stopped" }, { kind: "stop" }];
}
