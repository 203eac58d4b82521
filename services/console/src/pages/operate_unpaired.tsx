/** Sides whose counterpart did not come to their node: an edge that sends both ways of a session to different nodes shows here. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { nodeName, useNodes } from "./nodes.tsx";
import { Listed } from "./parts.tsx";
import type { NodeRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { type Look, looked } from "./unpaired_history.ts";
import { UnpairedChart } from "./unpaired_chart.tsx";

/** Outlives the page, so that coming back finds what was seen. */
let seen: readonly Look[] = [];

const COLUMNS: readonly Column<NodeRow>[] = [
  { title: "Node", cell: nodeName },
  { title: "Devices alone", figure: true, cell: (node) => node.unpaired_client },
  { title: "Hosts alone", figure: true, cell: (node) => node.unpaired_host },
];

export function UnpairedPage(): JSX.Element {
  const loaded = useNodes();
  const [history, setHistory] = useState(seen);
  const nodes = loaded.value;
  useEffect(() => {
    if (nodes === null) return;
    seen = looked(seen, nodes, Date.now());
    setHistory(seen);
  }, [nodes]);
  return (
    <>
      <p class="quiet">
        A side is alone when the other side of its session came to another node, or to none. A steady rate means that the edge
        does not hash both paths alike: <code>bothy-server doctor</code> says where.
      </p>
      <Listed loaded={loaded}>
        {(all) => {
          const relays = all.filter(({ role }) => role !== "worker");
          return (
            <>
              <UnpairedChart history={history} nodes={relays} />
              <Table name="Unpaired sides since the start of each node" rows={relays} columns={COLUMNS} keyOf={(node) => node.node_id} />
            </>
          );
        }}
      </Listed>
    </>
  );
}
