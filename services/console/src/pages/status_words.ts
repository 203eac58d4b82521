/** What the status line says about a terminal. Pure. */

import type { TabState } from "../terminal/tab.ts";

export interface StatusWords {
  readonly tone: "good" | "warn" | "bad" | "quiet";
  readonly word: string;
}

export function statusOf(state: TabState): StatusWords {
  if (state.kind === "attaching") return { tone: "warn", word: "attaching" };
  if (state.kind === "refused") {
    if (state.why === "over") return { tone: "quiet", word: "ended" };
    return state.why === "away" ? { tone: "warn", word: "reconnecting" } : { tone: "bad", word: "not attached" };
  }
  const { status } = state;
  switch (status.kind) {
    case "up":
      return { tone: "good", word: "connected" };
    case "replaced":
      return { tone: "warn", word: "on another device" };
    case "ended":
      return { tone: status.exitStatus === null ? "bad" : "quiet", word: "ended" };
    case "connecting":
      return { tone: "warn", word: status.cause === null ? "connecting" : "reconnecting" };
  }
}

/** Milliseconds, as a person reads them. */
export function roundTrip(seconds: number | null): string | null {
  if (seconds === null) return null;
  const milliseconds = seconds * 1000;
  return milliseconds < 1 ? "< 1 ms" : `${Math.round(milliseconds)} ms`;
}
