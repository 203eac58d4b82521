/** Opening a terminal and coming back to one: the key of the host first, then the person's word, then the relay. */

import { confirm } from "../device/account.ts";
import { Refusal, type Rest } from "../device/rest.ts";
import type { Opened } from "../device/opened.ts";
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
  /** It was attached to, not opened. */
  readonly runs: boolean;
}

/** A new terminal. Throws HostKeyChanged before anything is asked, Refusal, Unreachable, and what a passkey throws. */
export async function openTerminal(rest: Rest, vault: Vault, place: Place, channelKey: string): Promise<Ready> {
  const before = await trusted(vault, { ...place, channelKey });
  const act = acted(place);
  const step_up_id = await confirm(rest, { purpose: "open", ...act });
  const opened = await rest.make<Opened>("/terminal/sessions", { ...act, step_up_id });
  const after = await trusted(vault, { ...place, channelKey: opened.host_channel_key });
  return { opened, trusted: { ...after, first: before.first }, runs: false };
}

/**
 * Whether the person confirms an attach: never, where the relay wants it, or before it is asked, for a session that another
 * device holds. The relay wants it for those, and for what was left long ago.
 */
export type Asking = "never" | "when needed" | "first";

/** A terminal that runs already. Throws as `openTerminal`. */
export async function attachTerminal(rest: Rest, vault: Vault, place: Place, sessionId: string, asking: Asking): Promise<Ready> {
  const confirmed = (): Promise<string> => confirm(rest, { purpose: "attach", ...acted(place) });
  const attach = (step_up_id: string | null): Promise<Opened> =>
    rest.make<Opened>(`/terminal/sessions/${sessionId}/attach`, { step_up_id });
  let opened: Opened;
  try {
    opened = await attach(asking === "first" ? await confirmed() : null);
  } catch (error) {
    if (asking !== "when needed" || !needsConfirmation(error)) throw error;
    opened = await attach(await confirmed());
  }
  return { opened, trusted: await trusted(vault, { ...place, channelKey: opened.host_channel_key }), runs: true };
}

export function needsConfirmation(error: unknown): boolean {
  return error instanceof Refusal && error.code === "step_up_required";
}

function acted(place: Place): { host_id: string; profile: string; session_user: string } {
  return { host_id: place.hostId, profile: place.profile, session_user: place.sessionUser };
}
