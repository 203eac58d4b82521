/** Times, sizes and errors in words. Pure, but for the person's own language of dates. */

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in its largest unit: `3 min`. */
export function lasting(seconds: number): string {
  const [unit, name] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.max(0, Math.floor(seconds / unit))} ${name}`;
}

/** `now` in milliseconds, as `Date.now()`. */
export function ago(instant: string | null, now: number): string {
  if (instant === null) return "never";
  const seconds = (now - Date.parse(instant)) / 1000;
  return seconds < 5 ? "now" : `${lasting(seconds)} ago`;
}

export function dated(instant: string): string {
  return new Date(instant).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** In decimal units, as disks and networks count. */
export function bytes(count: number): string {
  const names = ["B", "kB", "MB", "GB", "TB"];
  const power = Math.min(names.length - 1, count < 1000 ? 0 : Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.floor(value) : value.toFixed(1)} ${names[power]}`;
}

export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** What the browser's passkeys say, by the name of the error. */
const PASSKEY_WORDS: { readonly [name: string]: string } = {
  NotAllowedError: "The passkey was not used: it was cancelled, took too long, or is not on this machine. Try again.",
  InvalidStateError: "This authenticator has a passkey of yours already.",
  SecurityError: "Passkeys do not work at this address: the relay has to be opened by its name, over https.",
  NotSupportedError: "This browser or authenticator cannot make such a passkey.",
  AbortError: "The passkey was cancelled. Try again.",
};

/** An error for the person, where it happened. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const words = PASSKEY_WORDS[error.name] ?? error.message;
  return words === "" ? error.name : words.charAt(0).toUpperCase() + words.slice(1);
}
