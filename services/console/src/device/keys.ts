/** The keys of this browser: made here, kept here, and exportable by nobody, this program included. */

import { type Bytes, type KeyPair, type Purpose, newChannelKey, signedBytes } from "../channel/index.ts";

const { subtle } = globalThis.crypto;

/** One device at one relay: an Ed25519 key to sign with and an X25519 key for the channel. */
export interface Keys {
  readonly signing: CryptoKeyPair;
  /** Raw, 32 bytes. */
  readonly signingPublic: Bytes;
  readonly channel: KeyPair;
}

/** Fresh keys. Throws a DOMException in a browser that lacks the algorithms. */
export async function newKeys(): Promise<Keys> {
  const signing = (await subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"])) as CryptoKeyPair;
  const signingPublic = new Uint8Array(await subtle.exportKey("raw", signing.publicKey));
  return { signing, signingPublic, channel: await newChannelKey() };
}

/** A signature for one purpose and one relay; `relay` is the canonical origin of the page. */
export async function sign(
  keys: Keys,
  purpose: Purpose,
  relay: string,
  ...fields: readonly (Bytes | string)[]
): Promise<Bytes> {
  const covered = signedBytes(purpose, relay, ...fields);
  return new Uint8Array(await subtle.sign("Ed25519", keys.signing.privateKey, covered));
}

export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await subtle.digest("SHA-256", bytes));
}
