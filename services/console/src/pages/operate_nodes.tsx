/** The processes of the relay, as each says of itself. */

import type { JSX } from "preact";

import { confirm } from "../device/account.ts";
import { useHere } from "./here.ts";
import { nodeName, useNodes } from "./nodes.tsx";
import { Action, Badge, Listed, useNow } from "./parts.tsx";
import type { NodeRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { ago, bytes, lasting } from "./words.ts";

export function NodesTable(): JSX.Element {
  const loaded = useNodes();
  const now = useNow();
  const columns: readonly Column<NodeRow>[] = [
    { title: "Node", cell: nodeName },
    { title: "State", cell: (node) => <NodeBadge node={node} /> },
    { title: "Hosts", figure: true, cell: (node) => node.controls },
    { title: "Sides", figure: true, cell: (node) => node.sides },
    { title: "Pairs", figure: true, cell: (node) => node.pairs },
    { title: "Pending", figure: true, cell: (node) => node.pending },
    { title: "Unpaired", figure: true, cell: (node) => node.unpaired_client + node.unpaired_host },
    { title: "Relayed", figure: true, cell: (node) => bytes(node.forwarded_bytes) },
    { title: "Listener", figure: true, cell: (node) => (node.echo_age_s === null ? "-" : `${lasting(node.echo_age_s)} ago`) },
    { title: "Up", figure: true, cell: (node) => ago(node.started_at, now).replace(" ago", "") },
    { title: "Version", cell: (node) => node.version },
    { title: "Actions", cell: (node) => <Drain node={node} drained={loaded.reload} /> },
  ];
  return <Listed loaded={loaded}>{(nodes) => <Table name="Nodes" rows={nodes} columns={columns} keyOf={(node) => node.node_id} />}</Listed>;
}

function NodeBadge({ node }: { readonly node: NodeRow }): JSX.Element {
  if (!node.heard && node.state !== "active") return <Badge tone="quiet">has left</Badge>;
  if (!node.heard) return <Badge tone="bad">silent for {lasting(node.silent_s)}</Badge>;
  return <Badge tone={node.state === "active" ? "good" : "warn"}>{node.state}</Badge>;
}

function Drain({ node, drained }: { readonly node: NodeRow; drained(): void }): JSX.Element | null {
  const { rest } = useHere();
  if (node.role === "worker" || node.state !== "active" || !node.heard) return null;
  const drain = async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_relay" });
    await rest.call("POST", `/nodes/${node.node_id}/drain`, { step_up_id });
    drained();
    return "The node leaves; its sessions move to others.";
  };
  return <Action label="Drain" name={`Drain ${node.origin ?? node.node_id}`} question="Move its connections away and stop it?" run={drain} />;
}
