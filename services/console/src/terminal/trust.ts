/**
 * Which key a host must prove: the one that this browser remembers, whatever the relay says.
 *
 * A host is known by its id or by its name, as in `bothy_device/known_hosts.py`, so that a relay cannot pass another machine
 * off under a name that the person knows.
 */

import { type Bytes, LIMITS, fingerprint, fromBase64 } from "../channel/index.ts";
import type { Pin, Vault } from "../device/vault.ts";

/** Where keys are remembered. */
export type Pins = Pick<Vault, "pins" | "trust">;

/** What the relay says about a host. */
export interface NamedHost {
  readonly hostId: string;
  readonly hostName: string;
  /** Base64. */
  readonly channelKey: string;
}

/** The relay names another key than the one that is remembered: another machine, a new installation, or an attack. */
export class HostKeyChanged extends Error {
  readonly host: NamedHost;
  readonly remembered: string;
  readonly named: string;

  /** Both as fingerprints. */
  constructor(host: NamedHost, remembered: string, named: string) {
    super(`${host.hostName} shows another key than before, so nothing was sent to it.`);
    this.host = host;
    this.remembered = remembered;
    this.named = named;
  }
}

export interface Trusted {
  readonly key: Bytes;
  readonly fingerprint: string;
  /** This browser saw the host for the first time. */
  readonly first: boolean;
}

/** The key to use. A host that is new here is remembered. Throws HostKeyChanged. */
export async function trusted(vault: Pins, host: NamedHost): Promise<Trusted> {
  const key = keyOf(host);
  const shown = await fingerprint(key);
  const pins = await pinsOf(vault, host);
  if (pins.length === 0) {
    await trust(vault, host);
    return { key, fingerprint: shown, first: true };
  }
  for (const pin of pins) {
    const remembered = await fingerprint(pin.channelKey);
    if (remembered !== shown) throw new HostKeyChanged(host, remembered, shown);
  }
  return { key, fingerprint: shown, first: false };
}

/** Remember the key that the relay names now, in place of every other one of this host. */
export async function trust(vault: Pins, host: NamedHost): Promise<void> {
  const pin = { hostId: host.hostId, hostName: host.hostName, channelKey: keyOf(host) };
  await vault.trust(pin, await pinsOf(vault, host));
}

async function pinsOf(vault: Pins, host: NamedHost): Promise<readonly Pin[]> {
  return (await vault.pins()).filter(({ hostId, hostName }) => hostId === host.hostId || hostName === host.hostName);
}

function keyOf(host: NamedHost): Bytes {
  const key = fromBase64(host.channelKey);
  if (key === null || key.length !== LIMITS.KEY_BYTES) throw new Error(`${host.hostName} has no key yet: it has to be paired.`);
  return key;
}
