/** Opening a terminal and coming back to one: the key of the host first, then the person's word, then the relay. */

import { confirm } from "../device/account.ts";
import { Refusal, type Rest } from "../device/rest.ts";
import type { Opened } from "../device/terminal_session.ts";
import type { Vault } from "../device/vault.ts";
import { type Trusted, trusted } from "./trust.ts";

/** What a terminal is on; kept over a reload. */
export interface Place {
  readonly hostId: string;
  readonly hostName: string;
  readonly profile: string;
  readonly sessionUser: string;
}

/** A session to connect to, and the key that its host has to prove. */
export interface Ready {
  readonly opened: Opened;
  readonly trusted: Trusted;
}

/** A new terminal. Throws HostKeyChanged before anything is asked, Refusal, Unreachable, and what a passkey throws. */
export async function openTerminal(rest: Rest, vault: Vault, place: Place, channelKey: string): Promise<Ready> {
  const before = await trusted(vault, { ...place, channelKey });
  const act = acted(place);
  const step_up_id = await confirm(rest, { purpose: "open", ...act });
  const opened = await rest.make<Opened>("/terminal/sessions", { ...act, step_up_id });
  const after = await trusted(vault, { ...place, channelKey: opened.host_channel_key });
  return { opened, trusted: { ...after, first: before.first } };
}

/**
 * A terminal that runs already. `ask` lets the person confirm when the relay wants that, which it does for a session of
 * another device, or that was left long ago. Throws as `openTerminal`.
 */
export async function attachTerminal(rest: Rest, vault: Vault, place: Place, sessionId: string, ask: boolean): Promise<Ready> {
  const path = `/terminal/sessions/${sessionId}/attach`;
  let opened: Opened;
  try {
    opened = await rest.make<Opened>(path, { step_up_id: null });
  } catch (error) {
    if (!ask || !needsConfirmation(error)) throw error;
    const step_up_id = await confirm(rest, { purpose: "attach", ...acted(place) });
    opened = await rest.make<Opened>(path, { step_up_id });
  }
  return { opened, trusted: await trusted(vault, { ...place, channelKey: opened.host_channel_key }) };
}

export function needsConfirmation(error: unknown): boolean {
  return error instanceof Refusal && error.code === "step_up_required";
}

function acted(place: Place): { host_id: string; profile: string; session_user: string } {
  return { host_id: place.hostId, profile: place.profile, session_user: place.sessionUser };
}
