import assert from "node:assert/strict";
import { test } from "node:test";

import { FeedParser } from "../../src/device/feed.ts";

const STREAM =
  'retry: 2000\n\n: hello\n\nevent: reset\nid: 7\ndata: {}\n\nid: 9\n\nevent: presence\ndata: {"all":true,"hosts":{"a":"online"}}\n\n';

test("events come out the same however the stream is cut", () => {
  for (let size = 1; size <= STREAM.length; size++) {
    const parser = new FeedParser();
    const events = [];
    for (let start = 0; start < STREAM.length; start += size) events.push(...parser.push(STREAM.slice(start, start + size)));
    assert.deepEqual(events, [
      { name: "reset", data: {} },
      { name: "presence", data: { all: true, hosts: { a: "online" } } },
    ]);
    assert.equal(parser.lastId, "9");
  }
});

test("an event without an id leaves the last one", () => {
  const parser = new FeedParser();
  parser.push("event: reset\nid: 7\ndata: {}\n\nevent: reconnect\ndata: {}\n\n");
  assert.equal(parser.lastId, "7");
});

test("a block that has not ended is no event yet", () => {
  const parser = new FeedParser();
  assert.deepEqual(parser.push("event: reset\ndata: {}\n"), []);
  assert.equal(parser.push("\n").length, 1);
});
