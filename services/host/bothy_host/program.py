"""What a session runs: the command of its profile as its account, in an environment that holds nothing of the service's."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from bothy_host.accounts import Account
from bothy_host.settings import Profile

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_PLAIN_TERM = "xterm-256color"


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. ``command`` none means the login shell, ``folder`` none the home of the account."""

    account: Account
    command: tuple[str, ...] | None
    folder: str | None
    environment: dict[str, str]

    @property
    def path(self) -> str:
        """The file to execute."""
        return self.command[0] if self.command else self.account.shell

    @property
    def argv(self) -> tuple[str, ...]:
        """A login shell knows itself by the dash before its name."""
        return self.command or (f"-{Path(self.account.shell).name}",)


def program_of(profile: Profile, account: Account, term: str) -> Program:
    """The program of a session; ``term`` is the device's word for its terminal, and no path or option."""
    return Program(
        account=account,
        command=None if profile.command is None else tuple(profile.command),
        folder=profile.cwd,
        environment=environment(account, term if _TERM.fullmatch(term) else _PLAIN_TERM, profile.env),
    )


def environment(account: Account, term: str, extra: dict[str, str]) -> dict[str, str]:
    """All that a program gets of an environment: the account's, the terminal's, the locale of this host, the profile's."""
    locale = {name: value for name, value in os.environ.items() if name == "LANG" or name.startswith("LC_")}
    return (
        {"PATH": _PATH, "LANG": "C.UTF-8"}
        | locale
        | extra
        | {"TERM": term, "HOME": account.home, "SHELL": account.shell, "USER": account.name, "LOGNAME": account.name}
    )
