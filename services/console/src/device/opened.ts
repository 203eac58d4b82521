/** What lets a device dial a session: the answer to an open, and how to get the next one. */

import { closedBecause } from "./reasons.ts";
import { Refusal, type Rest } from "./rest.ts";

/** What the relay answered to an open or attach. */
export interface Opened {
  readonly session_id: string;
  readonly host_id: string;
  readonly profile: string;
  readonly session_user: string;
  readonly stream_path: string;
  readonly stream_token: string;
  readonly host_channel_key: string;
  readonly expires_in_s: number;
}

/**
 * Ask for a new stream token. A session that somebody holds on another device is not taken away from them unless `take` says
 * so: null then. Throws Refusal and Unreachable.
 */
export async function attach(rest: Rest, opened: Opened, take: boolean, signal: AbortSignal): Promise<Opened | null> {
  const path = `/terminal/sessions/${opened.session_id}`;
  const row = await rest.call<{ state: string; close_reason: string | null; device_id: string }>("GET", path, undefined, signal);
  const me = await rest.call<{ device_id: string }>("GET", "/me", undefined, signal);
  if (row.state === "closed") throw new Refusal(409, "session_closed", closedBecause(row.close_reason ?? ""), 0);
  if (row.device_id !== me.device_id && row.state !== "detached" && !take) return null;
  const next = await rest.call<Opened>("POST", `${path}/attach`, { step_up_id: null }, signal);
  if (next.host_channel_key !== opened.host_channel_key) {
    throw new Refusal(409, "host_key_changed", "the relay names another key of the host; nothing was sent to it", 0);
  }
  return next;
}
