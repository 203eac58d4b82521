/** All hosts of the relay, and what an operator may do with them: all but opening a terminal. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { confirm } from "../device/account.ts";
import { AddHost } from "./add_host.tsx";
import { ConfirmKey } from "./confirm_key.tsx";
import { useLoaded, usePresence } from "./happenings.ts";
import { useHere } from "./here.ts";
import { HostBadge } from "./hosts.tsx";
import { Pairing, codeFor } from "./pairing.tsx";
import { Action, Badge, Empty, Listed, useNow } from "./parts.tsx";
import type { CodeMade, HostRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { ago, dated } from "./words.ts";

export function HostsTable(): JSX.Element {
  const { rest } = useHere();
  const presenceOf = usePresence();
  const now = useNow();
  const [code, setCode] = useState<{ host: string; made: CodeMade } | null>(null);
  const loaded = useLoaded<readonly HostRow[]>(
    async () => (await rest.call<{ hosts: HostRow[] }>("GET", "/hosts")).hosts,
    ["host.updated", "rights.changed"],
  );
  const columns: readonly Column<HostRow>[] = [
    {
      title: "Host",
      cell: (host) => (
        <>
          <strong>{host.name}</strong>
          <code class="id">{host.host_id}</code>
        </>
      ),
    },
    {
      title: "State",
      cell: (host) => (
        <>
          <HostBadge host={host} presence={presenceOf(host)} />
          {host.state !== "active" && presenceOf(host) !== "offline" && <Badge tone="good">{presenceOf(host)}</Badge>}
        </>
      ),
    },
    { title: "Reason", cell: (host) => host.disabled_reason ?? "" },
    {
      title: "Last seen",
      cell: (host) => (
        <span title={host.last_seen_at === null ? "" : dated(host.last_seen_at)}>
          {presenceOf(host) === "online" ? "now" : ago(host.last_seen_at, now)}
        </span>
      ),
    },
    { title: "Key", cell: (host) => (host.fingerprint === null ? "not paired" : <code class="id whole">{host.fingerprint}</code>) },
    { title: "Actions", cell: (host) => <HostActions host={host} coded={(made) => setCode({ host: host.name, made })} /> },
  ];
  return (
    <>
      <Listed loaded={loaded}>
        {(hosts) =>
          hosts.length === 0 ? (
            <Empty title="No host yet">
              <p>Name the first one. You get a code, with which the machine pairs itself.</p>
            </Empty>
          ) : (
            <Table name="Hosts" rows={hosts} columns={columns} keyOf={(host) => host.host_id} />
          )
        }
      </Listed>
      {code !== null && <Pairing host={code.host} made={code.made} />}
      <AddHost />
    </>
  );
}

function HostActions({ host, coded }: { readonly host: HostRow; coded(made: CodeMade): void }): JSX.Element | null {
  const { rest } = useHere();
  if (host.state === "retired") return null;
  const act = (state: "active" | "disabled" | "retired", done: string) => async (): Promise<string> => {
    const step_up_id = await confirm(rest, { purpose: "manage_host", host_id: host.host_id });
    await rest.call("POST", `/hosts/${host.host_id}/state`, { state, step_up_id });
    return `${host.name} is ${done}.`;
  };
  const paired = host.channel_key !== null;
  return (
    <span class="row">
      {host.state === "pending" && paired && host.owner && <ConfirmKey host={host} />}
      <Action
        label={paired ? "Pair again" : "Pairing code"}
        name={`Pairing code for ${host.name}`}
        {...(paired ? { question: "Its machine is replaced by whoever uses the code. Go on?" } : {})}
        run={async () => {
          coded(await codeFor(rest, host.host_id));
          return "";
        }}
      />
      {host.state === "disabled" ? (
        <Action label="Enable" name={`Enable ${host.name}`} run={act("active", "enabled")} />
      ) : (
        host.state === "active" && (
          <Action label="Disable" name={`Disable ${host.name}`} question="End all of its sessions?" kind="danger" run={act("disabled", "disabled")} />
        )
      )}
      <Action label="Retire" name={`Retire ${host.name}`} question="For good?" kind="danger" run={act("retired", "retired")} />
    </span>
  );
}
