/** What was decided, by whom and about whom: newest first, by any filter, in pages. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { ACTIONS } from "./audit_actions.ts";
import { type Topic, useLoaded } from "./happenings.ts";
import { useHere } from "./here.ts";
import { Pager } from "./pager.tsx";
import { Badge, Empty, Listed } from "./parts.tsx";
import type { AuditEntry, AuditPage as Page, HostRow, PersonRow } from "./rows.ts";
import { type Column, Table } from "./table.tsx";
import { dated } from "./words.ts";

const PAGE = 50;
/** Most decisions are told as one of these. */
const AUDITED: readonly Topic[] = ["terminal_session.changed", "host.updated", "rights.changed", "node.changed"];

interface Names {
  readonly persons: readonly PersonRow[];
  readonly hosts: readonly HostRow[];
}

interface Filter {
  readonly action: string;
  readonly person_id: string;
  readonly host_id: string;
  /** A local date and time, as the browser's field gives it. */
  readonly since: string;
}

const EVERYTHING: Filter = { action: "", person_id: "", host_id: "", since: "" };

export function AuditPage(): JSX.Element {
  const { rest } = useHere();
  const [filter, setFilter] = useState(EVERYTHING);
  const [before, setBefore] = useState<readonly number[]>([]);
  const query = queryOf(filter, before[before.length - 1]);
  const page = useLoaded<Page>(() => rest.call("GET", `/audit?${query}`), AUDITED, query);
  const named = useLoaded<Names>(async () => {
    const [{ persons }, { hosts }] = await Promise.all([
      rest.call<{ persons: PersonRow[] }>("GET", "/persons"),
      rest.call<{ hosts: HostRow[] }>("GET", "/hosts"),
    ]);
    return { persons, hosts };
  }, []);
  const names = named.value ?? { persons: [], hosts: [] };
  const change = (part: Partial<Filter>): void => {
    setFilter({ ...filter, ...part });
    setBefore([]);
  };
  return (
    <>
      <Filters filter={filter} names={names} change={change} reload={page.reload} />
      <Listed loaded={page}>
        {({ entries, before: next }) => (
          <>
            {entries.length === 0 ? (
              <Empty title="No entry">
                <p>Nothing that was decided fits this filter.</p>
              </Empty>
            ) : (
              <Table name="Audit" rows={entries} columns={columnsOf(names)} keyOf={(entry) => String(entry.position)} />
            )}
            <Pager
              newer={before.length > 0 ? () => setBefore(before.slice(0, -1)) : null}
              older={next === null ? null : () => setBefore([...before, next])}
            />
          </>
        )}
      </Listed>
    </>
  );
}

interface FiltersProps {
  readonly filter: Filter;
  readonly names: Names;
  change(part: Partial<Filter>): void;
  reload(): void;
}

function Filters({ filter, names, change, reload }: FiltersProps): JSX.Element {
  return (
    <form class="row filters" role="search" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <Choice label="Action" value={filter.action} choices={ACTIONS.map((each) => [each, each])} change={(action) => change({ action })} />
      <Choice
        label="By"
        value={filter.person_id}
        choices={names.persons.map((each) => [each.person_id, each.name])}
        change={(person_id) => change({ person_id })}
      />
      <Choice
        label="Host"
        value={filter.host_id}
        choices={names.hosts.map((each) => [each.host_id, each.name])}
        change={(host_id) => change({ host_id })}
      />
      <label class="field">
        <span>Since</span>
        <input type="datetime-local" value={filter.since} onInput={(event) => change({ since: event.currentTarget.value })} />
      </label>
      <button type="button" onClick={reload}>
        Refresh
      </button>
    </form>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly (readonly [value: string, text: string])[];
  change(value: string): void;
}

function Choice({ label, value, choices, change }: ChoiceProps): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value)}>
        <option value="">any</option>
        {choices.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function columnsOf({ persons, hosts }: Names): readonly Column<AuditEntry>[] {
  const person = (id: string | null): string => (id === null ? "" : (persons.find((each) => each.person_id === id)?.name ?? id));
  const host = (id: string | null): string => (id === null ? "" : (hosts.find((each) => each.host_id === id)?.name ?? id));
  return [
    { title: "When", cell: (entry) => <time dateTime={entry.at}>{dated(entry.at)}</time> },
    { title: "Action", cell: (entry) => <code>{entry.action}</code> },
    { title: "Outcome", cell: (entry) => (entry.code === "ok" ? "ok" : <Badge tone="quiet">{entry.code}</Badge>) },
    { title: "By", cell: (entry) => person(entry.person_id) || "server" },
    { title: "About", cell: (entry) => person(entry.subject_person_id) },
    { title: "Host", cell: (entry) => host(entry.host_id) },
    { title: "Session", cell: (entry) => entry.session_id !== null && <code class="id">{entry.session_id}</code> },
  ];
}

function queryOf(filter: Filter, before: number | undefined): string {
  const query = new URLSearchParams({ limit: String(PAGE) });
  for (const name of ["action", "person_id", "host_id"] as const) if (filter[name] !== "") query.set(name, filter[name]);
  if (filter.since !== "") query.set("since", new Date(filter.since).toISOString());
  if (before !== undefined) query.set("before", String(before));
  return query.toString();
}
