/** The ways to the pages before and behind this one. */

import type { JSX } from "preact";

interface PagerProps {
  /** Null where there is no such page. */
  readonly newer: (() => void) | null;
  readonly older: (() => void) | null;
}

export function Pager({ newer, older }: PagerProps): JSX.Element | null {
  if (newer === null && older === null) return null;
  return (
    <nav class="row" aria-label="Pages of the list">
      <button type="button" disabled={newer === null} onClick={() => newer?.()}>
        Newer
      </button>
      <button type="button" disabled={older === null} onClick={() => older?.()}>
        Older
      </button>
    </nav>
  );
}
