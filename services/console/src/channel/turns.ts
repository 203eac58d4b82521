/** Asynchronous steps, one after another, in the order in which they were asked for. */

export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Run `step` behind all before it. A step that fails fails for its own caller only. */
  take<Result>(step: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(step);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
