/** Bytes, and their one canonical base64. */

export type Bytes = Uint8Array<ArrayBuffer>;

export const NOTHING: Bytes = new Uint8Array();

/** The UTF-8 bytes of a text. */
export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** The pieces in one. */
export function concat(...pieces: readonly Bytes[]): Bytes {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let start = 0;
  for (const piece of pieces) {
    whole.set(piece, start);
    start += piece.length;
  }
  return whole;
}

/** Whether both are the same; not in constant time, so nothing secret is compared with it. */
export function equal(one: Bytes | null, other: Bytes | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

export function toBase64(bytes: Bytes): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** The bytes; null for what is no base64, or another spelling of it. */
export function fromBase64(text: string): Bytes | null {
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return toBase64(bytes) === text ? bytes : null;
  } catch {
    return null; // the only thing that atob throws for
  }
}
