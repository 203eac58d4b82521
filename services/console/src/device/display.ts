/**
 * What was given to the terminal and is not drawn yet: how much of it counts as output, and when it is of no use any more.
 *
 * The terminal gets one piece after another, each when it drew the one before. So what it cannot keep up with waits here,
 * where it has a bound (one window and one repaint) and can be dropped.
 */

import type { Bytes } from "../channel/index.ts";

/** Bytes that the terminal gets at once: it draws them within a frame or two. */
const PIECE = 64 * 1024;

/** Draws bytes and calls back when they are drawn. */
export type Draw = (data: Bytes, drawn: () => void) => void;

interface Piece {
  readonly data: Bytes;
  readonly counts: boolean;
}

export class Display {
  readonly #draw: Draw;
  readonly #processed: (count: number) => void;
  readonly #idle: () => void;
  #waiting: Piece[] = [];
  #drawing: Piece | null = null;
  #dropped = false; // what is being drawn was reported already
  #stale = false;
  #repainting = false;

  /** `processed` hears how many bytes of output were taken, `idle` that nothing is left to draw. */
  constructor(draw: Draw, processed: (count: number) => void, idle: () => void) {
    this.#draw = draw;
    this.#processed = processed;
    this.#idle = idle;
  }

  get busy(): boolean {
    return this.#drawing !== null || this.#waiting.length > 0;
  }

  /** A channel is open, on which output goes on exactly where it was, or else is counted anew. */
  opened(exact: boolean): void {
    this.#stale = !exact;
    this.#repainting = false;
  }

  /** The program printed. */
  output(data: Bytes): void {
    if (this.#stale) this.#discard();
    this.#show(data, true);
  }

  /** A part of the screen as it is; the first part stands for all that is not drawn yet. */
  repaint(data: Bytes, last: boolean): void {
    if (!this.#repainting) this.#discard();
    this.#repainting = !last;
    this.#show(data, false);
  }

  #discard(): void {
    this.#stale = false;
    const pieces = this.#drawing && !this.#dropped ? [this.#drawing, ...this.#waiting] : this.#waiting;
    this.#dropped = this.#drawing !== null;
    this.#waiting = [];
    const count = pieces.reduce((sum, piece) => sum + (piece.counts ? piece.data.length : 0), 0);
    if (count > 0) this.#processed(count);
  }

  #show(data: Bytes, counts: boolean): void {
    for (let start = 0; start < data.length; start += PIECE) {
      this.#waiting.push({ data: data.subarray(start, start + PIECE), counts });
    }
    this.#next();
  }

  #next(): void {
    if (this.#drawing !== null) return;
    const piece = this.#waiting.shift();
    if (piece === undefined) return;
    this.#drawing = piece;
    this.#draw(piece.data, () => {
      const told = this.#dropped;
      this.#drawing = null;
      this.#dropped = false;
      if (piece.counts && !told) this.#processed(piece.data.length);
      this.#next();
      if (!this.busy) this.#idle();
    });
  }
}
