/** Constants of protocol version 1, close codes, and how long to wait: from wire.json, which is made of bothy_wire. */

import wire from "./wire.json" with { type: "json" };

/** Dial again? See docs/spec/close-codes.md; `attach`: ask for a new stream token first. `wait` is for hosts. */
export type Retry = "never" | "soon" | "later" | "attach" | "wait";

/** Both ends must hold the same ones, so they are no configuration. */
export const LIMITS = wire.limits;

/** Seconds: low and high of the first step of `soon` and `later`, the cap of both, and when a connection counts as steady. */
export const BACKOFF = wire.backoff;

/** The retry meaning of any close code for a device's stream: an unknown 4xxx means never, an unknown 1xxx soon. */
export function retryOf(code: number): Retry {
  const meaning = meanings.get(code);
  if (meaning) return meaning.stream;
  return code >= 1000 && code < 2000 ? "soon" : "never";
}

/** One line for a person about any close code. */
export function textOf(code: number): string {
  return meanings.get(code)?.text ?? `the connection was closed with code ${code}`;
}

interface Meaning {
  readonly name: string;
  readonly stream: Retry;
  readonly text: string;
}

const rows: { readonly [code: string]: Meaning } = wire.close_codes as { [code: string]: Meaning };
const meanings = new Map(Object.entries(rows).map(([code, row]) => [Number(code), row]));
