/** What operators see and do. */

import type { JSX } from "preact";

import { AuditPage } from "./operate_audit.tsx";
import { HostsTable } from "./operate_hosts.tsx";
import { NodesTable } from "./operate_nodes.tsx";
import { PersonsTable } from "./operate_persons.tsx";
import { SessionsTable } from "./operate_sessions.tsx";
import { UnpairedPage } from "./operate_unpaired.tsx";
import { OPERATE, type OperatePage, hashOf } from "./route.ts";

const PARTS: { readonly [part in OperatePage]: { readonly title: string; readonly Part: () => JSX.Element } } = {
  nodes: { title: "Nodes", Part: NodesTable },
  hosts: { title: "Hosts", Part: HostsTable },
  sessions: { title: "Sessions", Part: SessionsTable },
  unpaired: { title: "Unpaired sides", Part: UnpairedPage },
  audit: { title: "Audit", Part: AuditPage },
  persons: { title: "Persons", Part: PersonsTable },
};

export function OperatePages({ part }: { readonly part: OperatePage }): JSX.Element {
  const { title, Part } = PARTS[part];
  return (
    <section class="operate" aria-labelledby="operate-title">
      <nav class="parts" aria-label="Operate">
        {OPERATE.map((each) => (
          <a key={each} href={hashOf({ page: "operate", part: each })} aria-current={each === part ? "page" : undefined}>
            {PARTS[each].title}
          </a>
        ))}
      </nav>
      <h1 id="operate-title">{title}</h1>
      <Part key={part} />
    </section>
  );
}
