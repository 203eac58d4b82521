/** What comes from elsewhere and must not act as keys or as marks: pasted text and titles. Pure. */

const TITLE_LENGTH = 80;
/** What is looked at of a title; a program may send one of megabytes, and many of them. */
const LOOKED_AT = 16 * TITLE_LENGTH;

/** All control characters but tab and line ends: C0, DEL and the 8-bit forms, C1. */
const PASTED = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** Control characters, and the marks that turn the direction of writing. */
const SHOWN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Pasted text as plain characters, as xterm has it: no escape that ends the bracket of a paste (`ESC [ 201 ~` and what
 * programs read as the same), none that a program takes for a key, no Ctrl-C.
 */
export function cleanPaste(text: string): string {
  return text.replaceAll(PASTED, "");
}

/** A title or a name that a program chose, for a tab: short, one line, nothing invisible. */
export function cleanTitle(text: string): string {
  const plain = text.slice(0, LOOKED_AT).replaceAll(SHOWN, " ").replaceAll(/ +/g, " ").trim();
  const characters = [...plain];
  return characters.length <= TITLE_LENGTH ? plain : `${characters.slice(0, TITLE_LENGTH - 1).join("")}\u2026`;
}

/**
 * An address that a click may open: only the web, however it is written. Null for every other.
 *
 * Without a name and password: they stand before the host and are mostly there to look like one.
 */
export function webAddress(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  url.username = "";
  url.password = "";
  return url.href;
}

/** Where a link leads, for the person: the whole host, and what stands behind it as far as a title goes. */
export function shownAddress(text: string): string {
  const address = webAddress(text);
  if (address === null) return "";
  const { origin } = new URL(address);
  return origin + cleanTitle(address.slice(origin.length));
}
