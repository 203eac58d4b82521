/**
 * Domain-separated signatures, and the names of keys.
 *
 * Signed bytes are a u16 length and the label `bothy-<purpose>-v1`, then fields with a u32 length each. The first field is
 * always the *audience*: the canonical origin that the client dialled. A signature made for one purpose or one server is
 * worthless for any other (docs/spec/vectors/signing.json holds shared test vectors).
 */

import { type Bytes, concat, toBase64, utf8 } from "./bytes.ts";

/** What a browser signs for, and the fields after the audience; the whole list is that of bothy_wire. */
export type Purpose =
  | "stream-identify" // challenge, session id, SHA-256 of the stream token
  | "device-login" // challenge, device id
  | "device-step-up" // challenge, device id, purpose, host id, profile, session user
  | "invite-redeem" // hash of the invite code, signing key, channel key, device name, "browser"
  | "passkey-add" // challenge, SHA-256 of the attestation object, name of the passkey
  | "passkey-login" // challenge, signing key, channel key, device name
  | "device-ask"; // signing key, channel key, device name

/** `scheme://host[:port]` in lower case, the default port dropped; ws and wss count as http and https. Throws RangeError. */
export function canonicalOrigin(address: string): string {
  const url = URL.canParse(address) ? new URL(address.replace(/^ws/i, "http")) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username || url.password) {
    throw new RangeError("an address like https://relay.example.com is needed");
  }
  return url.origin;
}

/** A label with a u16 length, then fields with a u32 length each: no two lists of fields give the same bytes. */
export function labelled(label: string, ...fields: readonly (Bytes | string)[]): Bytes {
  const pieces = [sized(utf8(label), 2)];
  for (const field of fields) pieces.push(sized(typeof field === "string" ? utf8(field) : field, 4));
  return concat(...pieces);
}

/** The exact bytes that a signature covers. */
export function signedBytes(purpose: Purpose, audience: string, ...fields: readonly (Bytes | string)[]): Bytes {
  return labelled(`bothy-${purpose}-v1`, audience, ...fields);
}

/** How a key is shown to a person: `SHA256:` and unpadded base64, as ssh does. */
export async function fingerprint(publicKey: Bytes): Promise<string> {
  return `SHA256:${await digest(publicKey)}`;
}

/** How a token names a key (`cnf`): unpadded base64url of the SHA-256 of the raw key. */
export async function thumbprint(publicKey: Bytes): Promise<string> {
  return (await digest(publicKey)).replaceAll("+", "-").replaceAll("/", "_");
}

function sized(raw: Bytes, lengthBytes: 2 | 4): Bytes {
  const length = new DataView(new ArrayBuffer(4));
  length.setUint32(0, raw.length);
  return concat(new Uint8Array(length.buffer).slice(4 - lengthBytes), raw);
}

async function digest(publicKey: Bytes): Promise<string> {
  return toBase64(new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", publicKey))).replace(/=+$/, "");
}
