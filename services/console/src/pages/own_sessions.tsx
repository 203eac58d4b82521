/** The person's own sessions on a host: to come back to, from whichever device they were opened, or to end. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { attachTerminal } from "../terminal/opening.ts";
import { HostKeyChanged } from "../terminal/trust.ts";
import { useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import { KeyWarning } from "./key_warning.tsx";
import { Action, Badge, useNow } from "./parts.tsx";
import type { SessionRow } from "./rows.ts";
import { go } from "./whereabouts.ts";
import { ago } from "./words.ts";

export function OwnSessions({ sessions }: { readonly sessions: readonly SessionRow[] }): JSX.Element | null {
  if (sessions.length === 0) return null;
  return (
    <ul class="lines" aria-label="Your sessions">
      {sessions.map((session) => (
        <SessionLine key={session.session_id} session={session} />
      ))}
    </ul>
  );
}

function SessionLine({ session }: { readonly session: SessionRow }): JSX.Element {
  const { rest, vault, tabs, me } = useHere();
  const now = useNow();
  const [changed, setChanged] = useState<HostKeyChanged | null>(null);
  const tab = useWatched(tabs.list).find(({ sessionId }) => sessionId === session.session_id);
  const id = session.session_id;
  const mine = session.device_id === me.device_id;
  const place = {
    hostId: session.host_id,
    hostName: session.host_name,
    profile: session.profile,
    sessionUser: session.session_user,
  };

  const attach = async (): Promise<string> => {
    try {
      if (tab === undefined) tabs.attached(place, id, await attachTerminal(rest, vault, place, id, mine ? "when needed" : "first"));
      go({ page: "terminals", sessionId: id });
    } catch (error) {
      if (!(error instanceof HostKeyChanged)) throw error;
      setChanged(error);
    }
    return "";
  };
  const close = async (): Promise<string> => {
    await rest.call("POST", `/terminal/sessions/${id}/close`, {});
    return `The session on ${session.host_name} has ended.`;
  };

  const device = mine ? "this browser" : session.device_name;
  return (
    <li>
      <Badge tone={session.state === "active" ? "good" : "quiet"}>{session.state}</Badge>
      <span>
        {session.session_user} <span class="quiet">({session.profile})</span>
      </span>
      <span class="quiet">
        {session.state === "detached" ? `left ${ago(session.detached_at, now)} on ${device}` : `on ${device}`}, opened{" "}
        {ago(session.opened_at, now)}
      </span>
      <span class="spring" />
      {changed !== null ? (
        <KeyWarning changed={changed} trusted={() => setChanged(null)} kept={() => setChanged(null)} />
      ) : (
        <span class="row">
          <Action label={tab === undefined ? "Attach" : "Show"} name={`${tab === undefined ? "Attach to" : "Show"} the session on ${session.host_name}`} run={attach} />
          <Action label="End" name={`End the session on ${session.host_name}`} question="End it and all that runs in it?" kind="danger" run={close} />
        </span>
      )}
    </li>
  );
}
