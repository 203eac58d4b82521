/** How many sides stayed alone on each node between two looks at its counters. Pure. */

import type { NodeRow } from "./rows.ts";

/** One look. */
export interface Look {
  /** Milliseconds, as `Date.now()`. */
  readonly at: number;
  /** By node: what was added since the look before. */
  readonly added: ReadonlyMap<string, number>;
  readonly totals: ReadonlyMap<string, number>;
}

/** Looks that are kept: an hour, at one in ten seconds. */
const KEPT = 360;

/** The history with one more look. A node that started anew counts from nothing; one that is new adds nothing yet. */
export function looked(history: readonly Look[], nodes: readonly NodeRow[], at: number): readonly Look[] {
  const before = history[history.length - 1]?.totals;
  const totals = new Map(nodes.map((node) => [node.node_id, node.unpaired_client + node.unpaired_host]));
  const added = new Map(
    [...totals].map(([id, total]) => {
      const earlier = before?.get(id) ?? total;
      return [id, total < earlier ? total : total - earlier];
    }),
  );
  return [...history, { at, added, totals }].slice(-KEPT);
}
