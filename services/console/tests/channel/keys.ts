/** Keys that are known, for vectors. */

import type { Bytes } from "../../src/channel/bytes.ts";
import type { KeyPair } from "../../src/channel/noise.ts";
import { bytes } from "./hex.ts";

/** The X25519 key with this private half, in hexadecimal. */
export async function keyPair(privateKey: string): Promise<KeyPair> {
  const pkcs8 = bytes("302e020100300506032b656e04220420" + privateKey);
  const imported = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]);
  return { privateKey: imported, publicKey: await publicHalf(imported) };
}

/** RFC 7748: the public key is the private one times the point 9. */
async function publicHalf(privateKey: CryptoKey): Promise<Bytes> {
  const basePoint = await crypto.subtle.importKey("raw", Uint8Array.of(9, ...new Uint8Array(31)), "X25519", false, []);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: basePoint }, privateKey, 256));
}
