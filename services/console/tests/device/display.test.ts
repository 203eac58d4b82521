/** What the terminal has not drawn: reported once each, dropped when a repaint stands for it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bytes, utf8 } from "../../src/channel/index.ts";
import { Display } from "../../src/device/display.ts";

/** A terminal that draws when the test says so. */
class Terminal {
  readonly display: Display;
  shown = "";
  processed = 0;
  idle = 0;
  #drawing: { data: Bytes; drawn: () => void } | null = null;

  constructor() {
    this.display = new Display(
      (data, drawn) => {
        assert.equal(this.#drawing, null, "one piece at a time");
        this.#drawing = { data, drawn };
      },
      (count) => (this.processed += count),
      () => this.idle++,
    );
    this.display.opened(true);
  }

  /** Draws one piece; whether there was one. */
  draw(): boolean {
    const drawing = this.#drawing;
    if (drawing === null) return false;
    this.#drawing = null;
    this.shown += Buffer.from(drawing.data).toString();
    drawing.drawn();
    return true;
  }

  drawAll(): void {
    while (this.draw());
  }
}

test("output counts when it is drawn, in its order", () => {
  const terminal = new Terminal();
  terminal.display.output(utf8("one "));
  terminal.display.output(utf8("two"));
  assert.deepEqual([terminal.processed, terminal.display.busy], [0, true]);
  terminal.draw();
  assert.deepEqual([terminal.processed, terminal.idle], [4, 0]);
  terminal.draw();
  assert.deepEqual([terminal.processed, terminal.idle, terminal.display.busy], [7, 1, false]);
  assert.equal(terminal.shown, "one two");
});

test("a large piece is drawn in parts, so that keys and frames come in between", () => {
  const terminal = new Terminal();
  terminal.display.output(new Uint8Array(300_000));
  terminal.draw();
  assert.ok(terminal.processed > 0 && terminal.processed <= 64 * 1024);
  terminal.drawAll();
  assert.equal(terminal.processed, 300_000);
});

test("a repaint stands for all that is not drawn yet, also for what is being drawn", () => {
  const terminal = new Terminal();
  terminal.display.output(utf8("old"));
  terminal.display.output(utf8(" and never seen"));
  terminal.display.opened(false);
  terminal.display.repaint(utf8("scr"), false);
  assert.equal(terminal.processed, 18);
  terminal.display.repaint(utf8("een"), true);
  terminal.display.output(utf8("$ "));
  terminal.drawAll();
  assert.equal(terminal.shown, "oldscreen$ ");
  assert.equal(terminal.processed, 20);
});

test("a second repaint drops what is left of the first", () => {
  const terminal = new Terminal();
  terminal.display.opened(false);
  terminal.display.repaint(utf8("being drawn "), false);
  terminal.display.repaint(utf8("half"), false);
  terminal.display.opened(false); // the channel was lost within it
  terminal.display.repaint(utf8("whole"), true);
  terminal.drawAll();
  assert.equal(terminal.shown, "being drawn whole");
  assert.equal(terminal.processed, 0);
});

test("output that is counted anew without a repaint drops the old one too", () => {
  const terminal = new Terminal();
  terminal.display.output(utf8("old"));
  terminal.display.output(utf8("older"));
  terminal.display.opened(false);
  terminal.display.output(utf8("new"));
  terminal.drawAll();
  assert.equal(terminal.shown, "oldnew");
  assert.equal(terminal.processed, 11);
});

test("an exact resume goes on with what waits", () => {
  const terminal = new Terminal();
  terminal.display.output(utf8("a"));
  terminal.display.output(utf8("b"));
  terminal.display.opened(true);
  terminal.display.output(utf8("c"));
  terminal.drawAll();
  assert.deepEqual([terminal.shown, terminal.processed], ["abc", 3]);
});
