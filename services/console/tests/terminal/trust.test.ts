import assert from "node:assert/strict";
import { test } from "node:test";

import { toBase64 } from "../../src/channel/index.ts";
import type { Pin } from "../../src/device/vault.ts";
import { HostKeyChanged, type NamedHost, type Pins, trust, trusted } from "../../src/terminal/trust.ts";

class Kept implements Pins {
  list: Pin[] = [];

  pins(): Promise<readonly Pin[]> {
    return Promise.resolve(this.list);
  }

  trust(pin: Pin, others: readonly Pin[]): Promise<void> {
    this.list = [...this.list.filter((each) => !others.includes(each)), pin];
    return Promise.resolve();
  }
}

function host(hostId: string, hostName: string, key: number): NamedHost {
  return { hostId, hostName, channelKey: toBase64(new Uint8Array(32).fill(key)) };
}

test("a host is remembered at its first use, and is the same after that", async () => {
  const kept = new Kept();
  assert.equal((await trusted(kept, host("a", "lab-1", 1))).first, true);
  const again = await trusted(kept, host("a", "lab-1", 1));
  assert.equal(again.first, false);
  assert.match(again.fingerprint, /^SHA256:.{43}$/);
});

test("another key is refused, also of another host under a known name", async () => {
  const kept = new Kept();
  const known = await trusted(kept, host("a", "lab-1", 1));
  for (const shown of [host("a", "lab-1", 2), host("a", "renamed", 2), host("b", "lab-1", 2)]) {
    await assert.rejects(trusted(kept, shown), (error) => error instanceof HostKeyChanged && error.remembered === known.fingerprint);
  }
  assert.equal((await trusted(kept, host("b", "lab-2", 2))).first, true);
});

test("a new key that is trusted takes the place of all that were the host's", async () => {
  const kept = new Kept();
  await trusted(kept, host("a", "lab-1", 1));
  await trust(kept, host("b", "lab-1", 2));
  assert.equal((await trusted(kept, host("b", "lab-1", 2))).first, false);
  assert.deepEqual(kept.list.map(({ hostId }) => hostId), ["b"]);
});

test("a host without a key is not paired yet", async () => {
  await assert.rejects(trusted(new Kept(), { hostId: "a", hostName: "lab-1", channelKey: "" }), /paired/);
});
