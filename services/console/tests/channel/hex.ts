/** Vectors hold bytes as hexadecimal. */

import type { Bytes } from "../../src/channel/bytes.ts";

export function bytes(hex: string): Bytes {
  return new Uint8Array(Buffer.from(hex, "hex"));
}

export function hex(raw: Uint8Array): string {
  return Buffer.from(raw).toString("hex");
}
