/** What a session shows of itself, what it shows it on, and its bounds. */

import type { Draw } from "./display.ts";

/** Keys `device.*`, `channel.*` of the command line, as the console has them. Bytes and seconds. */
export interface Limits {
  /** Typed while the terminal is away: kept up to this, dropped beyond it. */
  readonly inputBuffer: number;
  /** Typed or pasted and not with the host. */
  readonly paste: number;
  readonly failGrace: number;
  readonly patience: number;
  readonly pingEvery: number;
  /** A connection that says nothing for so long when it is asked is taken for dead. */
  readonly silence: number;
  /** What the browser holds of output of ours before no more is given to it. */
  readonly socketBuffer: number;
}

export const DEFAULTS: Limits = {
  inputBuffer: 64 * 1024,
  paste: 8 * 1024 * 1024,
  failGrace: 1,
  patience: 15,
  pingEvery: 5,
  silence: 45,
  socketBuffer: 256 * 1024,
};

/** What the status line shows. `cause` are words for the person; `retryIn` in seconds; `waiting` bytes typed and not sent. */
export type Status =
  | { readonly kind: "connecting"; readonly cause: string | null; readonly retryIn: number | null; readonly waiting: number }
  | { readonly kind: "up"; readonly roundTrip: number | null; readonly waiting: number }
  | { readonly kind: "replaced" }
  /** `over`: the session itself is; else it may run on without us. */
  | { readonly kind: "ended"; readonly exitStatus: number | null; readonly over: boolean; readonly text: string };

/** The terminal on the page. */
export interface Screen {
  readonly draw: Draw;
  size(): { columns: number; rows: number };
  /** A line for the person, of the relay or the host; untrusted text. */
  say(text: string): void;
  /** Keys were dropped. */
  bell(): void;
}
