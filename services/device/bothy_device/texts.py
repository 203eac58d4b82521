"""Words for a person about every code that a relay or a host answers with."""

from __future__ import annotations

from uuid import UUID

from bothy_wire.close_codes import CloseCode, retry_of, text_of
from bothy_wire.printable import printable

PROBLEMS: dict[str, str] = {
    "already_issued": "that was already made by an earlier try; look at it with bothy sessions",
    "device_exists": "the relay knows these keys already; try again, new keys are made for every login",
    "device_login_denied": "this device was sent away on the other one",
    "device_login_invalid": "nobody approved this device in time; begin again",
    "device_login_limit": "too many devices wait to be let in at this relay; try again, or use an invite",
    "device_revoked": "this device was revoked; run bothy logout, then bothy login with a new invite",
    "device_unknown": "there is no such device; bothy devices lists yours",
    "expiry_past": "the end of the grant has passed",
    "fingerprint_mismatch": "the machine that was paired shows another fingerprint; compare with what bothy-host pair printed",
    "grant_unknown": "there is no such grant; bothy hosts grants lists them",
    "host_exists": "there is a host of that name already; bothy hosts lists them, bothy hosts code makes a code for one",
    "host_not_active": "the host is not active: its owner must confirm (bothy hosts confirm) or enable it; bothy hosts shows its state",
    "host_unavailable": "the host is not connected; is bothy-host running there? bothy hosts shows its presence",
    "host_unknown": "there is no such host, or you have no right on it; bothy hosts lists yours",
    "idempotency_mismatch": "the relay saw this request with other content; run the command again",
    "idempotency_running": "the relay is still carrying this request out; try again in a moment",
    "internal": "the relay made a mistake; its log says more",
    "invite_invalid": "the invite code is wrong, used or expired; ask for a new one",
    "last_owner": "nobody who can decide about the host would be left; add another owner first, or retire it",
    "login_refused": "the relay does not know this device any more; run bothy logout, then bothy login with a new invite",
    "person_disabled": "your account was disabled; ask an operator of the relay",
    "operator_required": "only an operator of the relay may do this",
    "owner_required": "only an owner of the host may do this; to operate the relay gives no right on it",
    "owner_unknown": "no owner of the host is called so; bothy hosts owners lists them",
    "person_unknown": "there is no such person, or they are disabled; give the exact name, or the id",
    "person_without_device": "they never signed in, and whoever gets their invite would get the right; let them sign in first",
    "profile_unknown": "the host has no such profile; bothy hosts lists them",
    "rate_limited": "too many requests; wait a moment and try again",
    "replaced": "the session was attached from elsewhere in the meantime; run bothy attach again to take it back",
    "right_missing": "you have no right to open this profile as this user; ask the host's owner",
    "session_closed": "the session has ended; bothy open starts a new one",
    "session_limit": "too many sessions are open; end one with bothy close",
    "session_unknown": "there is no such session; bothy sessions lists yours",
    "slow_down": "the relay was asked too often; wait a moment",
    "step_up_refused": "the relay did not take the proof of this device's key, or it came too late; try again",
    "step_up_required": "the relay did not take the proof of this device's key; try again",
    "token_invalid": "the relay does not accept this login any more; try again, then bothy logout and bothy login",
    "unavailable": "the relay cannot reach its database; try again in a moment",
    "user_code_unknown": "no device waits with this code, or it waited too long; begin the login there anew",
    "user_unknown": "the profile does not allow this user; bothy hosts lists users",
}
"""Problem code to what to do."""

REFUSALS: dict[str, str] = {
    "token_expired": "the session token came too late, or the host cannot check it now; try again, and look at the host's log",
    "token_replayed": "the host saw this session token before; try again",
    "token_invalid": "the host does not trust the relay's token; has the relay changed its keys?",
    "device_not_authorized": "the host's operator has not listed this device; give them the line of bothy device show",
    "profile_mismatch": "the host and the relay disagree about the profile or user; try again",
    "session_unknown": "the host does not run this session; bothy sessions lists yours",
    "size_invalid": "the host refused the size of this terminal (1 to 1000 columns and rows)",
}
"""Refusal of a handshake by the host to what to do."""

CLOSE_REASONS: dict[str, str] = {
    "client_closed": "it was closed with bothy close or in the console",
    "closed_by_owner": "the host's owner ended it",
    "process_exited": "the program ended, its last output did not arrive",
    "open_failed": "it could not be started",
    "idle": "nothing was typed or printed for too long",
    "max_duration": "it reached the longest time a session may last",
    "detach_expired": "nobody was attached for too long",
    "host_disabled": "the host was disabled",
    "host_retired": "the host was retired",
    "host_repaired": "the host was paired again",
    "host_restarted": "the host service was restarted",
    "host_lost": "the host has been away for too long",
    "revoked": "the right has ended, or the device or the account was taken away",
}
"""close_reason of a session to its meaning."""

OPEN_FAILURES: dict[str, str] = {
    "open_timeout": "the host did not answer in time",
    "start_timeout": "the host did not start the program in time",
    "refused": "the host refused it",
    "profile_unknown": PROBLEMS["profile_unknown"],
    "user_unknown": "the host has no such user, or the profile does not allow it",
    "local_confirm_denied": "the person at the host did not allow it",
    "spawn_failed": "the host could not start the program; its log says why",
}
"""close_detail of a session that could not be opened to its meaning."""


def problem(code: str, detail: str) -> str:
    """What a refusal by the relay means; the relay's own words where the code is a new one."""
    return PROBLEMS.get(code) or printable(detail) or f"the relay refused: {printable(code)}"


def refusal(code: str) -> str:
    """What a refusal by the host means."""
    return REFUSALS.get(code, f"the host refused: {printable(code)}")


def ended(reason: str, detail: str | None = None) -> str:
    """A session that ended without an exit status (4100)."""
    reason = printable(reason)
    meaning = OPEN_FAILURES.get(detail or "") or CLOSE_REASONS.get(reason)
    name = f"{reason}/{printable(detail)}" if detail else reason
    return f"closed by the relay: {name or 'no reason given'}" + (f" ({meaning})" if meaning else "")


def lost(code: int, reason: str, session_id: UUID, *, opened: bool) -> str:
    """A stream connection that closed with ``code``; ``opened`` when the terminal had been reached."""
    if code == CloseCode.SESSION_ENDED:
        return ended(reason)
    why = text_of(code)
    retry = retry_of(code, "stream")
    if retry == "never" and code != CloseCode.NORMAL:
        return f"the relay closed the connection: {why}"
    if not opened:
        return f"the terminal could not be reached: {why}; try again"
    return goes_on(why, session_id)


def goes_on(text: str, session_id: UUID) -> str:
    """What happened, and how to come back."""
    return f"{text}; the session goes on: bothy attach {session_id}"


def keys(count: int) -> str:
    """How many; a key is a byte, as far as anybody here can tell."""
    return "1 key" if count == 1 else f"{count} keys"


def help_for(session_id: UUID, host: str, escape: str) -> str:
    """What ``~?`` shows."""
    return "\n".join(
        (
            f"session {session_id} on {host}",
            f" {escape}.   leave; the session goes on",
            f" {escape}D   drop what was typed and not sent yet",
            f" {escape}^Z  suspend bothy",
            f" {escape}?   this help",
            f" {escape}{escape}   send the escape character",
            "(at the start of a line only)",
        )
    )
