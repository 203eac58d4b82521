/** As whom a person may open a terminal on a host. Pure. */

import type { HostRow } from "./rows.ts";

export interface Choice {
  readonly profile: string;
  readonly sessionUser: string;
}

/** All that the host's profiles and the person's rights leave; none for who only operates the relay. */
export function choicesOf(host: HostRow): readonly Choice[] {
  const allowed = (user: string): boolean => host.owner || host.session_users.includes(user);
  return Object.entries(host.profiles).flatMap(([profile, users]) =>
    users.filter(allowed).map((sessionUser) => ({ profile, sessionUser })),
  );
}

/** Why no terminal can be opened now, in words; null when one can. */
export function obstacle(host: HostRow, presence: string): string | null {
  switch (host.state) {
    case "pending":
      return host.channel_key === null ? "Not paired yet." : "Its owner has to confirm its key.";
    case "disabled":
      return host.disabled_reason === "duplicate_connection" ? "Disabled: two machines have its key." : "Disabled by an owner or operator.";
    case "retired":
      return "Retired.";
    default:
      break;
  }
  if (!host.owner && host.session_users.length === 0) return "You have no right to open terminals here.";
  if (presence !== "online") return presence === "lost" ? "Its connection was lost; it will come back." : "It is offline.";
  return choicesOf(host).length === 0 ? "Its profiles allow no account to you." : null;
}
