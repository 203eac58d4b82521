/**
 * Positions: what one direction of the channel counts at each of its ends.
 *
 * A position counts the bytes of a direction from its start: output per session (EXIT counts one), input per lineage.
 * The sending end keeps to a window over what the receiving end *settled* (its terminal took it, or it went into the
 * pseudo-terminal), so the receiving end never holds more than a window, however slow it settles.
 *
 * Nothing here knows records or keys. A peer that breaks its window throws ChannelError, our own caller that does LocalError.
 */

import { ChannelError, LocalError } from "./errors.ts";

/** The configuration of a device's end; the input window must be the same at both ends (keys `channel.*`). */
export interface Limits {
  /** Seconds from the pairing to an open channel. */
  readonly handshakeTimeout: number;
  /** Bytes typed that the host has not yet written to the pseudo-terminal. */
  readonly inputWindow: number;
}

export const DEFAULT_LIMITS: Limits = { handshakeTimeout: 10, inputWindow: 64 * 1024 };

/** The sending end of a direction. */
export class Departures {
  /** Position sent on this channel. */
  sent = 0;
  /** Position that the peer settled. */
  acknowledged = 0;

  /** Bytes sent and not settled. */
  get inFlight(): number {
    return this.sent - this.acknowledged;
  }

  /** Bytes that may be sent now under `window`. */
  credit(window: number): number {
    return Math.max(0, window - this.inFlight);
  }

  /** Count what goes out. */
  send(count: number): void {
    this.sent += count;
  }

  /** The peer settled up to `position`. */
  acknowledge(position: number): void {
    if (position < this.acknowledged || position > this.sent) {
      throw new ChannelError("an acknowledgement of what was not sent");
    }
    this.acknowledged = position;
  }

  /** Send again from `position`; what the peer holds unsettled goes on counting against the window. */
  resume(position: number): void {
    if (position < this.acknowledged || position > this.sent) throw new ChannelError("the peer claims what was not sent");
    this.sent = position;
  }

  /** Count anew from `position`, with nothing in flight. */
  restart(position: number): void {
    this.sent = this.acknowledged = position;
  }
}

/** The receiving end of a direction. */
export class Arrivals {
  /** Position handed to the caller. */
  received = 0;
  /** Position that the caller settled. */
  settled = 0;
  readonly #window: number;
  #arrived = 0; // on this channel; behind `received` while a resume repeats what came before
  #foreign = 0; // handed out before the last restart and not settled yet

  constructor(window: number) {
    this.#window = window;
  }

  /** The position to acknowledge: settled, and sent on this channel. */
  get acknowledgeable(): number {
    return Math.min(this.settled, this.#arrived);
  }

  /** Whether an ACK is worth sending behind one of `acknowledged`: all is settled, or a quarter of what waited. */
  due(acknowledged: number): boolean {
    const progress = this.acknowledgeable - acknowledged;
    return progress > 0 && (this.settled === this.received || 4 * progress >= this.#arrived - acknowledged);
  }

  /** Refuse what the window does not hold; to be called before `arrive` for all that needs a window. */
  admit(count: number): void {
    if (this.#arrived + count > this.settled + this.#window) throw new ChannelError("the peer broke its window");
  }

  /** Count what came in; returns how many of these, the last ones, are new. */
  arrive(count: number): number {
    this.#arrived += count;
    const fresh = Math.max(0, this.#arrived - this.received);
    this.received += fresh;
    return fresh;
  }

  /** The caller settled `count` more, in the order in which it received them. */
  settle(count: number): void {
    if (!(count >= 0 && count <= this.#foreign + this.received - this.settled)) {
      throw new LocalError("more is settled than was received");
    }
    const foreign = Math.min(count, this.#foreign);
    this.#foreign -= foreign;
    this.settled += count - foreign;
  }

  /** The peer sends again from `position`, at most what was received. */
  resume(position: number): void {
    this.#arrived = position;
  }

  /** Count anew from `position`; what is not settled yet belongs to the old count and leaves this one alone. */
  restart(position: number): void {
    this.#foreign += this.received - this.settled;
    this.received = this.settled = this.#arrived = position;
  }
}
