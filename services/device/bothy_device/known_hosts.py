"""Pinned host keys: the server's word about a host's key is taken once, at first use, and never again.

``known_hosts`` holds one host per line: server, host id, fingerprint, name (the rest of the line). A host is recognised by
its id *or* by the name that the person uses, so that a server cannot pass another machine off under a known name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from bothy_device.failure import Failure
from bothy_device.state import replace
from bothy_wire.ids import parse_id
from bothy_wire.printable import printable

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def checked_fingerprint(text: str) -> str:
    """The fingerprint that a person typed. Raises :class:`Failure` for anything else."""
    if _FINGERPRINT.fullmatch(text) is None:
        raise Failure(f"{printable(text)!r} is no fingerprint; it looks like SHA256: and 43 characters")
    return text


@dataclass(frozen=True, slots=True)
class Pin:
    """One line."""

    server: str
    host_id: UUID
    fingerprint: str
    name: str

    def names(self, server: str, host_id: UUID, name: str) -> bool:
        """Whether this line speaks of that host."""
        return self.server == server and (self.host_id == host_id or printable(self.name) == printable(name))


class KnownHosts:
    """The pins of a state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pins(self) -> list[Pin]:
        """All lines. Raises :class:`Failure` for a line that cannot be read: a pin must not vanish unseen."""
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise Failure(f"cannot read {self._path}: {error}") from error
        pins = []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                server, host_id, fingerprint, name = line.split(" ", 3)
                pins.append(Pin(server, parse_id(host_id), fingerprint, name))
            except ValueError:
                raise Failure(f"{self._path}, line {number}: not a pinned host; mend or remove the line") from None
        return pins

    def trust(self, pin: Pin) -> None:
        """Pin a key, in place of what was pinned for this host before."""
        kept = [each for each in self.pins() if not each.names(pin.server, pin.host_id, pin.name)]
        lines = (f"{each.server} {each.host_id} {each.fingerprint} {printable(each.name)}\n" for each in (*kept, pin))
        replace(self._path, "".join(lines).encode())

    def check(self, shown: Pin, *, named: str | None, strict: bool) -> str | None:
        """Compare the key that the server shows with the pinned one, and pin it where that is allowed.

        ``named`` is the fingerprint that the person gave (``--host-key``). Returns a line for the person when the key was
        pinned now, ``None`` when it was known. Raises :class:`Failure` for a key that must not be trusted.
        """
        name = printable(shown.name)
        accept = f"bothy hosts trust {shown.host_id} {shown.fingerprint}"
        if named is not None:
            if named != shown.fingerprint:
                raise Failure(
                    f"{name} shows the key {shown.fingerprint}, not the {printable(named)} of --host-key; nothing was opened"
                )
            self.trust(shown)
            return None
        pinned = [each for each in self.pins() if each.names(shown.server, shown.host_id, shown.name)]
        for each in pinned:
            if each.fingerprint != shown.fingerprint:
                raise Failure(
                    f"THE KEY OF {name} HAS CHANGED: pinned {each.fingerprint}, shown now {shown.fingerprint}; somebody may be"
                    f" listening in. If its owner confirms the new key: {accept}"
                )
        if pinned:
            return None
        if strict:
            raise Failure(
                f"the key of {name} is not known yet: {shown.fingerprint}; if its owner confirms it: {accept}"
            )
        self.trust(shown)
        return f"first connection to {name}: pinned its key {shown.fingerprint}"
