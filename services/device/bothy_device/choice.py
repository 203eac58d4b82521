"""What a person means: a host by name or id, a profile and a user, a session by the beginning of its id. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bothy_device.failure import Failure
from bothy_device.rest import Host, SessionRow
from bothy_wire.printable import printable


def find_host(hosts: Sequence[Host], wanted: str) -> Host:
    """The host with that id or name. Raises :class:`Failure` for none and for several."""
    by_name = [each for each in hosts if each.name == wanted]
    found = (
        [each for each in hosts if str(each.host_id) == wanted]
        or [each for each in by_name if each.state != "retired"]  # its name was free again
        or by_name
    )
    match found:
        case [host]:
            return host
        case []:
            raise Failure(f"there is no host {printable(wanted)!r}; {_named(hosts)}")
        case _:
            ids = ", ".join(str(each.host_id) for each in found)
            raise Failure(f"{len(found)} hosts are called {printable(wanted)!r}, give the id of one: {ids}")


def find_session(sessions: Sequence[SessionRow], prefix: str, host: str | None = None) -> SessionRow:
    """The session not ended whose id begins with ``prefix``. Raises :class:`Failure` for none and for several.

    ``host`` says that these are everybody's on that host, as its owner sees them.
    """
    found = [each for each in sessions if str(each.session_id).startswith(prefix.lower())]
    match [each for each in found if each.state != "closed"]:
        case [session]:
            return session
        case [] if found:
            raise Failure(f"session {found[-1].session_id} has ended: {printable(found[-1].close_reason or 'closed')}")
        case []:
            whose, listed = (
                ("of yours", "") if host is None else (f"on {printable(host)}", f" --host {printable(host)}")
            )
            raise Failure(f"no session {whose} begins with {printable(prefix)!r}; bothy sessions{listed} lists them")
        case several:
            ids = ", ".join(str(each.session_id) for each in several)
            raise Failure(f"{len(several)} sessions begin with {printable(prefix)!r}, give more of one: {ids}")


def choose_login(host: Host, profile: str | None, user: str | None) -> tuple[str, str]:
    """Profile and user to open: what was asked for, or the only ones there are. Raises :class:`Failure` with the list.

    A ``@group`` of a profile stands for users that only the host knows; then the users of the person's right are offered.
    """
    name = printable(host.name)
    if not host.profiles:
        raise Failure(
            f"{name} has not reported any profile; is bothy-host running there? bothy hosts shows its presence"
        )
    if profile is not None and profile not in host.profiles:
        raise Failure(
            f"{name} has no profile {printable(profile)!r}; it has: {', '.join(map(printable, host.profiles))}"
        )
    offered = [
        (each, candidate)
        for each, allowed in host.profiles.items()
        if profile in (None, each)
        for candidate in _users(allowed, host.session_users, user)
    ]
    match offered:
        case [only]:
            return only
        case []:
            asked = f" as {printable(user)!r}" if user else ""
            raise Failure(
                f"you have no right to open {printable(profile or 'a profile')} on {name}{asked}; {_offer(host)}"
            )
        case _:
            choices = ", ".join(
                f"--profile {printable(each)} --user {printable(candidate)}" for each, candidate in offered
            )
            raise Failure(f"{name} offers several, choose one: {choices}")


def _users(allowed: Sequence[str], granted: Sequence[str], wanted: str | None) -> list[str]:
    """The users that profile and right have in common; ``granted`` empty means any."""
    groups = any(each.startswith("@") for each in allowed)
    named = [each for each in allowed if not each.startswith("@")]
    if wanted is not None:
        return [wanted] if (groups or wanted in named) and (not granted or wanted in granted) else []
    if not granted:
        return named
    return [each for each in granted if groups or each in named]


def _named(hosts: Sequence[Host]) -> str:
    return (
        f"you may see: {', '.join(printable(each.name) for each in hosts)}" if hosts else "you have a right on none yet"
    )


def _offer(host: Host) -> str:
    return "it offers " + "; ".join(
        f"{printable(each)}: {', '.join(map(printable, users))}" for each, users in host.profiles.items()
    )
