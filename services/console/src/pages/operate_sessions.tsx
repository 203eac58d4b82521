/** Everybody's sessions, as facts: what runs in them nobody at the relay can see. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { FIGURES_EVERY } from "./nodes.tsx";
import { Pager } from "./pager.tsx";
import { Action, Badge, Empty, Listed, useNow } from "./parts.tsx";
import type { HostRow, SessionPage, SessionRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { ago, bytes, dated } from "./words.ts";

const PAGE = 100;

export function SessionsTable(): JSX.Element {
  const { rest } = useHere();
  const now = useNow();
  const [all, setAll] = useState(false);
  const [before, setBefore] = useState<readonly string[]>([]);
  const at = before[before.length - 1];
  const query = `?everyone=true&all=${all}&limit=${PAGE}${at === undefined ? "" : `&before=${at}`}`;
  const loaded = useLoaded<SessionPage>(() => rest.call("GET", `/terminal/sessions${query}`), ["terminal_session.changed"], query, FIGURES_EVERY);

  const hosts = useLoaded<readonly HostRow[]>(
    async () => (await rest.call<{ hosts: HostRow[] }>("GET", "/hosts")).hosts,
    ["rights.changed"],
  );
  const owned = new Set(hosts.value?.filter(({ owner }) => owner).map(({ host_id }) => host_id));

  const columns: readonly Column<SessionRow>[] = [
    {
      title: "Person",
      cell: (row) => (
        <>
          <strong>{row.person_name}</strong> <span class="quiet">on {row.device_name}</span>
        </>
      ),
    },
    {
      title: "Where",
      cell: (row) => (
        <>
          {row.session_user}@{row.host_name} <span class="quiet">({row.profile})</span>
        </>
      ),
    },
    {
      title: "State",
      cell: (row) => (
        <>
          <Badge tone={row.state === "active" ? "good" : "quiet"}>{row.state}</Badge>{" "}
          {row.close_reason !== null && <span class="quiet">{row.close_reason}</span>}
        </>
      ),
    },
    { title: "Since", cell: (row) => <span title={dated(row.opened_at)}>{ago(row.opened_at, now)}</span> },
    { title: "In", figure: true, cell: (row) => bytes(row.bytes_in) },
    { title: "Out", figure: true, cell: (row) => bytes(row.bytes_out) },
    { title: "Actions", cell: (row) => <End session={row} owner={owned.has(row.host_id)} /> },
  ];
  return (
    <>
      <div class="row">
        <label class="check">
          <input
            type="checkbox"
            checked={all}
            onChange={(event) => {
              setAll(event.currentTarget.checked);
              setBefore([]);
            }}
          />
          <span>Also those that have ended</span>
        </label>
      </div>
      <Listed loaded={loaded}>
        {(page) => (
          <>
            {page.sessions.length === 0 ? (
              <Empty title="No session runs">
                <p>Sessions of all persons are listed here while they run.</p>
              </Empty>
            ) : (
              <Table name="Sessions" rows={page.sessions} columns={columns} keyOf={(row) => row.session_id} />
            )}
            <Pager
              newer={before.length > 0 ? () => setBefore(before.slice(0, -1)) : null}
              older={page.before === null ? null : () => setBefore([...before, page.before ?? ""])}
            />
          </>
        )}
      </Listed>
    </>
  );
}

/** One's own, and as an owner of the host everybody's; an operator may disable the host instead. */
function End({ session, owner }: { readonly session: SessionRow; readonly owner: boolean }): JSX.Element | null {
  const { rest, me } = useHere();
  const own = session.person_id === me.person_id;
  if (session.state === "closed" || (!own && !owner)) return null;
  const end = async (): Promise<string> => {
    await rest.call("POST", `/terminal/sessions/${session.session_id}/${own ? "close" : "terminate"}`, {});
    return `The session of ${session.person_name} on ${session.host_name} has ended.`;
  };
  return (
    <Action
      label="End"
      name={`End the session of ${session.person_name} on ${session.host_name}`}
      question="End it and all that runs in it?"
      kind="danger"
      run={end}
    />
  );
}
