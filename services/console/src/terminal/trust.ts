/** Which key a host must prove: the one that this browser remembers, whatever the relay says. */

import { type Bytes, LIMITS, fingerprint, fromBase64 } from "../channel/index.ts";
import type { Vault } from "../device/vault.ts";

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
export async function trusted(vault: Vault, host: NamedHost): Promise<Trusted> {
  const key = keyOf(host);
  const shown = await fingerprint(key);
  const pin = await vault.pin(host.hostId);
  if (pin === undefined) {
    await trust(vault, host);
    return { key, fingerprint: shown, first: true };
  }
  const remembered = await fingerprint(pin.channelKey);
  if (remembered !== shown) throw new HostKeyChanged(host, remembered, shown);
  return { key, fingerprint: shown, first: false };
}

/** Remember the key that the relay names now, in place of another one. */
export function trust(vault: Vault, host: NamedHost): Promise<void> {
  return vault.trust({ hostId: host.hostId, hostName: host.hostName, channelKey: keyOf(host) });
}

function keyOf(host: NamedHost): Bytes {
  const key = fromBase64(host.channelKey);
  if (key === null || key.length !== LIMITS.KEY_BYTES) throw new Error(`${host.hostName} has no key yet: it has to be paired.`);
  return key;
}
