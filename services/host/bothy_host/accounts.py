"""Which existing account a session may run as.

Looked up at each session, because accounts and groups change while the service runs. The calls may ask a directory
service, so they belong in a thread.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass


class AccountRefused(Exception):  # noqa: N818 - an answer to the server, not a fault of this program
    """No session as this user. The message is for the log of the host."""


@dataclass(frozen=True, slots=True)
class Account:
    """What a session needs of an account. ``switch`` is false when it is the account of the service itself."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str
    switch: bool


def account_for(user: str, allowed: Sequence[str], *, allow_root: bool) -> Account:
    """The account ``user`` of a profile that allows ``allowed`` (names and ``@group``). Raises :class:`AccountRefused`."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise AccountRefused(f"there is no account {user} on this host") from None
    if entry.pw_uid == 0 and not (allow_root and user in allowed):
        raise AccountRefused(f"{user} is root, which needs allow_root and its name in the profile")
    if user not in allowed and not any(_in_group(entry, name[1:]) for name in allowed if name.startswith("@")):
        raise AccountRefused(f"the profile does not allow {user}")
    own = os.geteuid()
    if own not in (0, entry.pw_uid):
        raise AccountRefused(f"the service runs as {own} and cannot become {user}; run it as root for other accounts")
    return Account(
        name=entry.pw_name,
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)),
        home=entry.pw_dir,
        shell=entry.pw_shell or "/bin/sh",
        switch=own != entry.pw_uid,
    )


def _in_group(entry: pwd.struct_passwd, group: str) -> bool:
    try:
        found = grp.getgrnam(group)
    except KeyError:
        return False
    return entry.pw_gid == found.gr_gid or entry.pw_name in found.gr_mem
