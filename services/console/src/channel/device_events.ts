/** What the device's end tells its shell. */

import type { Bytes } from "./bytes.ts";
import type { RefusalCode, Resume } from "./handshake.ts";

/** The channel is open. `droppedInput` bytes typed were dropped, because another device typed meanwhile. */
export interface Opened {
  readonly kind: "opened";
  readonly resume: Resume;
  readonly outputPosition: number;
  readonly droppedInput: number;
}

/** The host refused; leave with 1000 and act on the code. */
export interface Refusal {
  readonly kind: "refusal";
  readonly code: RefusalCode;
}

/** Bytes for the terminal; report them with `processed` when it took them. */
export interface Output {
  readonly kind: "output";
  readonly data: Bytes;
}

/**
 * A piece of a repaint for the terminal; counts in no position, so it is not reported.
 *
 * The first piece stands for all output that the terminal has not taken yet. The shell drops that and reports it as if it was
 * taken; so what waits for a terminal that takes nothing is never more than one window and one repaint.
 */
export interface Repaint {
  readonly kind: "repaint";
  readonly data: Bytes;
  readonly last: boolean;
}

/** The program ended, all its output came before. Report it as one processed byte. */
export interface Exited {
  readonly kind: "exited";
  readonly status: number;
}

/** A line for the person. */
export interface Notice {
  readonly kind: "notice";
  readonly text: string;
}

/** The host wrote the input up to this position to the pseudo-terminal. */
export interface InputAcknowledged {
  readonly kind: "inputAcknowledged";
  readonly position: number;
}

/** The answer to a ping; `roundTrip` in seconds. */
export interface Pong {
  readonly kind: "pong";
  readonly roundTrip: number;
}

export type DeviceEvent = Opened | Refusal | Output | Repaint | Exited | Notice | InputAcknowledged | Pong;
