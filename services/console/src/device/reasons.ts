/** Why a session ended and why a host refused one, in words; the same as `bothy_device/texts.py`. */

const CLOSED: { readonly [reason: string]: string } = {
  client_closed: "it was closed with bothy close or in the console",
  closed_by_owner: "the host's owner ended it",
  process_exited: "the program ended, its last output did not arrive",
  open_failed: "it could not be started",
  idle: "nothing was typed or printed for too long",
  max_duration: "it reached the longest time a session may last",
  detach_expired: "nobody was attached for too long",
  host_disabled: "the host was disabled",
  host_retired: "the host was retired",
  host_repaired: "the host was paired again",
  host_restarted: "the host service was restarted",
  host_lost: "the host has been away for too long",
  revoked: "the right has ended, or the device or the account was taken away",
};

const REFUSED: { readonly [code: string]: string } = {
  token_expired: "the session token came too late, or the host cannot check it now",
  token_replayed: "the host saw this session token before",
  token_invalid: "the host does not trust the relay's token; has the relay changed its keys?",
  device_not_authorized: "the host's operator has not listed this browser; a host that lists devices takes the command line",
  profile_mismatch: "the host and the relay disagree about the profile or user",
  session_unknown: "the host does not run this session",
  size_invalid: "the host refused the size of this terminal",
};

/** A session that is over, by its close_reason. */
export function closedBecause(reason: string): string {
  return `the session has ended: ${CLOSED[reason] ?? (reason || "no reason was given")}`;
}

/** A handshake that the host refused. */
export function refusedBecause(code: string): string {
  return REFUSED[code] ?? `the host refused: ${code}`;
}
