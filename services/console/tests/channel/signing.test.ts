/** Signatures against the vectors that Python reads too. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Purpose, canonicalOrigin, fingerprint, signedBytes, thumbprint } from "../../src/channel/signing.ts";
import vectors from "../../../../docs/spec/vectors/signing.json" with { type: "json" };
import { bytes, hex } from "./hex.ts";

test("every shared vector", async () => {
  const pkcs8 = bytes("302e020100300506032b657004220420" + vectors.private_key);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]);
  for (const vector of vectors.vectors) {
    const fields = vector.fields.map(({ text, hex: raw }: { text?: string; hex?: string }) => text ?? bytes(raw!));
    const signed = signedBytes(vector.purpose as Purpose, vector.audience, ...fields);
    assert.equal(hex(signed), vector.signed, vector.purpose);
    assert.equal(hex(new Uint8Array(await crypto.subtle.sign("Ed25519", key, signed))), vector.signature);
  }
});

test("the names of a key", async () => {
  assert.equal(await fingerprint(bytes(vectors.public_key)), vectors.fingerprint);
  assert.equal(await thumbprint(bytes(vectors.public_key)), vectors.thumbprint);
});

test("an origin has one spelling, and what is no address is refused", () => {
  for (const { url, origin } of vectors.origins) assert.equal(canonicalOrigin(url), origin);
  for (const url of vectors.refused_origins) assert.throws(() => canonicalOrigin(url), RangeError, url);
});
