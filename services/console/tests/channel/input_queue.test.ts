/** What was typed stays until it is written. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bytes } from "../../src/channel/bytes.ts";
import { ChannelError } from "../../src/channel/errors.ts";
import { InputQueue } from "../../src/channel/input_queue.ts";

function count(from: number, to: number): Bytes {
  return Uint8Array.from({ length: to - from }, (_, index) => from + index);
}

function queueWith(data: Bytes, window = 10): InputQueue {
  const queue = new InputQueue(window);
  queue.write(data);
  return queue;
}

test("bytes are taken in order and within the window", () => {
  const queue = queueWith(count(0, 25));
  assert.deepEqual(queue.take(4), count(0, 4));
  assert.deepEqual(queue.take(100), count(4, 10));
  assert.equal(queue.take(100).length, 0);
  assert.deepEqual([queue.pending, queue.unsent, queue.sent], [25, 15, 10]);
  queue.acknowledge(7);
  assert.deepEqual([queue.pending, queue.unsent], [18, 15]);
  assert.deepEqual(queue.take(100), count(10, 17));
});

test("only what was not sent can be dropped", () => {
  const queue = queueWith(count(0, 6));
  queue.take(2);
  queue.acknowledge(1);
  assert.deepEqual([queue.dropUnsent(), queue.dropUnsent()], [4, 0]);
  queue.write(count(50, 52));
  assert.deepEqual(queue.take(10), count(50, 52));
});

test("a resume sends again what the host lacks, and no other position is one", () => {
  const queue = queueWith(count(0, 6));
  queue.take(5);
  queue.acknowledge(1);
  for (const position of [0, 6]) assert.throws(() => queue.resume(position), ChannelError);
  for (const position of [0, 6]) assert.throws(() => queue.acknowledge(position), ChannelError);
  queue.resume(3);
  assert.deepEqual(queue.take(10), count(3, 6));
});

test("a new lineage keeps or drops all", () => {
  const queue = queueWith(count(0, 3));
  queue.take(2);
  assert.equal(queue.restart(false), 3);
  queue.write(count(0, 12));
  assert.equal(queue.restart(true), 0);
  assert.deepEqual(queue.take(100), count(0, 10));
});

test("what was written is copied, and what was taken too", () => {
  const typed = count(0, 3);
  const queue = queueWith(typed);
  typed.fill(99);
  const taken = queue.take(3);
  queue.acknowledge(3);
  queue.write(count(7, 10));
  assert.deepEqual(taken, count(0, 3));
});
