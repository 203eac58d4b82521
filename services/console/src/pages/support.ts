/** What a browser needs to be a device, and what this one is called. */

import { newKeys } from "../device/keys.ts";

/** What is missing, in words for the person; null when nothing is. */
export async function missing(): Promise<string | null> {
  if (!isSecureContext) {
    return "This page was opened over plain http, where browsers give no keys. Open it over https, or as http://localhost.";
  }
  if (/^(\[|[\d.]+$)/.test(location.hostname)) {
    return "This page was opened by a number, to which no passkey can belong. Open it by its name, on this machine as http://localhost.";
  }
  if (typeof PublicKeyCredential === "undefined") {
    return "This browser has no passkeys. Use a current Chrome, Edge, Firefox or Safari.";
  }
  try {
    await newKeys();
  } catch {
    return "This browser lacks the keys Ed25519 or X25519, which a terminal is encrypted with. Chrome and Edge have them from version 137, Firefox from 130, Safari from 17.";
  }
  return null;
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/Edg\//, "Edge"],
  [/Firefox\//, "Firefox"],
  [/Chrom(e|ium)\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

/** A first proposal for the device's name, like `Firefox on Linux`. */
export function browserName(agent: string): string {
  const named = (rows: readonly (readonly [RegExp, string])[], other: string): string =>
    rows.find(([pattern]) => pattern.test(agent))?.[1] ?? other;
  return `${named(BROWSERS, "Browser")} on ${named(SYSTEMS, "a computer")}`;
}
