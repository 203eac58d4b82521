/**
 * What was typed and is not acknowledged yet: the device's side of the input direction.
 *
 * Bytes stay here until the host says that they are in the pseudo-terminal, so that a resume can send again what was lost.
 */

import { type Bytes, NOTHING } from "./bytes.ts";
import { Departures } from "./flow.ts";

/** Typed bytes in order; the first ones are sent, the rest waits for the window or for a channel. */
export class InputQueue {
  readonly #window: number;
  readonly #typed = new Queue(); // its first byte stands at position `#counts.acknowledged`
  readonly #counts = new Departures();

  constructor(window: number) {
    this.#window = window;
  }

  /** Bytes not acknowledged, sent or not. */
  get pending(): number {
    return this.#typed.length;
  }

  /** Bytes not sent yet. */
  get unsent(): number {
    return this.#typed.length - this.#counts.inFlight;
  }

  /** Position sent, counted from the start of the lineage. */
  get sent(): number {
    return this.#counts.sent;
  }

  /** Queue what was typed. */
  write(data: Bytes): void {
    this.#typed.append(data);
  }

  /** The next bytes to send, at most `most` and as many as the window allows; they count as sent. */
  take(most: number): Bytes {
    const start = this.#counts.inFlight;
    const data = this.#typed.slice(start, start + Math.min(most, this.#counts.credit(this.#window)));
    this.#counts.send(data.length);
    return data;
  }

  /** The host wrote up to `position`. Throws ChannelError when that was never sent. */
  acknowledge(position: number): void {
    const before = this.#counts.acknowledged;
    this.#counts.acknowledge(position);
    this.#typed.dropFirst(position - before);
  }

  /** Forget what was not sent; returns how many bytes. */
  dropUnsent(): number {
    const dropped = this.unsent;
    this.#typed.truncate(this.#counts.inFlight);
    return dropped;
  }

  /** A new channel of the same lineage: send again from what the host received, else ChannelError. */
  resume(received: number): void {
    this.#counts.resume(received);
  }

  /** A new lineage. What was typed for the old one is dropped unless `keep`; returns how many bytes. */
  restart(keep: boolean): number {
    const dropped = keep ? 0 : this.#typed.length;
    this.#typed.dropFirst(dropped);
    this.#counts.restart(0);
    return dropped;
  }
}

/** Bytes that come in at the end and go out at the front, each copied a bounded number of times. */
class Queue {
  #bytes: Bytes = NOTHING;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  append(data: Bytes): void {
    if (this.#end + data.length > this.#bytes.length) {
      const room = new Uint8Array(2 * (this.length + data.length));
      room.set(this.#bytes.subarray(this.#start, this.#end));
      [this.#bytes, this.#start, this.#end] = [room, 0, this.length];
    }
    this.#bytes.set(data, this.#end);
    this.#end += data.length;
  }

  /** A copy. */
  slice(start: number, end: number): Bytes {
    return this.#bytes.slice(this.#start + start, Math.min(this.#start + end, this.#end));
  }

  dropFirst(count: number): void {
    this.#start += count;
    if (this.length === 0) [this.#bytes, this.#start, this.#end] = [NOTHING, 0, 0]; // a large paste is over
  }

  truncate(length: number): void {
    this.#end = this.#start + length;
  }
}
