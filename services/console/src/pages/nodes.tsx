/** The nodes of the relay, as several pages show them. */

import type { JSX } from "preact";

import { type Loaded, useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import type { NodeRow } from "./rows.ts";

/** Seconds between two looks at figures, which are no events. */
export const FIGURES_EVERY = 10;

export function useNodes(): Loaded<readonly NodeRow[]> {
  const { rest } = useHere();
  return useLoaded(
    async () => (await rest.call<{ nodes: NodeRow[] }>("GET", "/nodes")).nodes,
    ["node.changed"],
    "",
    FIGURES_EVERY,
  );
}

export function nodeName(node: NodeRow): JSX.Element {
  return (
    <>
      <strong>{node.role === "worker" ? "worker" : addressOf(node)}</strong>
      <code class="id">{node.node_id}</code>
    </>
  );
}

/** Where the node listens, as the edge dials it. */
export function addressOf(node: NodeRow): string {
  return node.origin?.replace(/^https?:\/\//, "") ?? node.node_id.slice(0, 8);
}
