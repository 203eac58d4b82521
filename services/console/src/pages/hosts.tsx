/** The hosts of a person: which are there, and a terminal on each with one click. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { openTerminal } from "../terminal/opening.ts";
import { HostKeyChanged } from "../terminal/trust.ts";
import { useWatched } from "../watched.ts";
import { choicesOf, obstacle } from "./choices.ts";
import { AddHost } from "./add_host.tsx";
import { ConfirmKey } from "./confirm_key.tsx";
import { useLoaded, usePresence } from "./happenings.ts";
import { useHere } from "./here.ts";
import { KeyWarning } from "./key_warning.tsx";
import { Action, Badge, Empty, Listed, useNow } from "./parts.tsx";
import { PasskeyAdvice } from "./passkeys.tsx";
import type { HostRow, Presence, SessionPage, SessionRow } from "./rows.ts";
import { OwnSessions } from "./own_sessions.tsx";
import { go } from "./whereabouts.ts";
import { ago } from "./words.ts";

interface HostsRead {
  readonly hosts: readonly HostRow[];
  readonly sessions: readonly SessionRow[];
}

export function HostsPage(): JSX.Element {
  const { rest, me } = useHere();
  const loaded = useLoaded<HostsRead>(
    async () => {
      const [{ hosts }, { sessions }] = await Promise.all([
        rest.call<{ hosts: readonly HostRow[] }>("GET", "/hosts"),
        rest.call<SessionPage>("GET", "/terminal/sessions"),
      ]);
      const kept = hosts.filter(({ state }) => state !== "retired");
      // Those that can be used first, whichever of them are online now: lines that jump are missed by a click.
      const usable = ({ state }: HostRow): number => (state === "active" ? 0 : 1);
      return { hosts: kept.sort((one, other) => usable(one) - usable(other)), sessions };
    },
    ["host.updated", "rights.changed", "terminal_session.changed"],
  );
  return (
    <section aria-labelledby="hosts-title">
      <h1 id="hosts-title">Hosts</h1>
      <PasskeyAdvice />
      <Listed loaded={loaded}>
        {({ hosts, sessions }) =>
          hosts.length === 0 ? (
            <NoHosts operator={me.is_operator} />
          ) : (
            <>
              <ul class="hosts">
                {hosts.map((host) => (
                  <HostCard key={host.host_id} host={host} sessions={sessions.filter(({ host_id }) => host_id === host.host_id)} />
                ))}
              </ul>
              {me.is_operator && <AddHost />}
            </>
          )
        }
      </Listed>
    </section>
  );
}

function NoHosts({ operator }: { readonly operator: boolean }): JSX.Element {
  return operator ? (
    <Empty title="No host yet">
      <p>Name the first one. You get a code, with which the machine pairs itself.</p>
      <AddHost />
    </Empty>
  ) : (
    <Empty title="No host is yours yet">
      <p>An owner of a host lets you in with this command on their machine, where NAME is your name here:</p>
      <p>
        <code>bothy hosts grant HOST NAME --user ACCOUNT</code>
      </p>
    </Empty>
  );
}

function HostCard({ host, sessions }: { readonly host: HostRow; readonly sessions: readonly SessionRow[] }): JSX.Element {
  const presence = usePresence()(host);
  const now = useNow();
  const why = obstacle(host, presence);
  return (
    <li class="card" aria-label={host.name}>
      <div class="card-head">
        <h2>{host.name}</h2>
        <HostBadge host={host} presence={presence} />
        {presence !== "online" && host.last_seen_at !== null && <span class="quiet">seen {ago(host.last_seen_at, now)}</span>}
        <span class="spring" />
        {why === null ? <OpenControl host={host} /> : <span class="quiet">{why}</span>}
        {host.state === "pending" && host.channel_key !== null && host.owner && <ConfirmKey host={host} />}
      </div>
      <OwnSessions sessions={sessions} />
    </li>
  );
}

export function HostBadge({ host, presence }: { readonly host: HostRow; readonly presence: Presence }): JSX.Element {
  if (host.state !== "active") return <Badge tone={host.state === "pending" ? "warn" : "bad"}>{host.state}</Badge>;
  return <Badge tone={presence === "online" ? "good" : presence === "lost" ? "warn" : "quiet"}>{presence}</Badge>;
}

/** One click where there is one choice. */
function OpenControl({ host }: { readonly host: HostRow }): JSX.Element {
  const { rest, vault, tabs, passkeys } = useHere();
  const [chosen, setChosen] = useState(0);
  const [changed, setChanged] = useState<HostKeyChanged | null>(null);
  const choices = choicesOf(host);
  const choice = choices[Math.min(chosen, choices.length - 1)];
  const lacksPasskey = useWatched(passkeys) === 0;

  if (choice === undefined) return <></>;
  const open = async (): Promise<string> => {
    const place = { hostId: host.host_id, hostName: host.name, ...choice };
    try {
      const ready = await openTerminal(rest, vault, place, host.channel_key ?? "");
      tabs.opened(place, ready);
      go({ page: "terminals", sessionId: ready.opened.session_id });
    } catch (error) {
      if (!(error instanceof HostKeyChanged)) throw error;
      setChanged(error);
    }
    return "";
  };
  const forget = (): void => setChanged(null);
  if (changed !== null) return <KeyWarning changed={changed} trusted={forget} kept={forget} />;
  return (
    <span class="open">
      {choices.length === 1 ? (
        <span class="quiet">as {choice.sessionUser}</span>
      ) : (
        <select
          aria-label={`Profile and account on ${host.name}`}
          value={String(choices.indexOf(choice))}
          onChange={(event) => setChosen(Number(event.currentTarget.value))}
        >
          {choices.map(({ profile, sessionUser }, index) => (
            <option key={index} value={String(index)}>
              {sessionUser} - {profile}
            </option>
          ))}
        </select>
      )}
      <Action kind="primary" label="Open" name={`Open a terminal on ${host.name}`} disabled={lacksPasskey} run={open} />
    </span>
  );
}
