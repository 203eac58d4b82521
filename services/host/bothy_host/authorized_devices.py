"""The file ``authorized_devices``: which devices may open a terminal here, whatever the server says.

One line per device: ``SHA256:`` fingerprint of the channel key, name, optional ``users=a,b`` and ``profiles=a,b``. Empty
lines and lines that begin with ``#`` do not count. ``bothy device show`` prints the line of a device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


class AuthorizedDevicesError(Exception):
    """The file is missing, unreadable or malformed. The message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Line:
    """One device. ``None`` means every user or profile that the settings allow."""

    fingerprint: str
    name: str
    users: frozenset[str] | None = None
    profiles: frozenset[str] | None = None

    def allows(self, profile: str, user: str) -> bool:
        """Whether this line covers a session of the profile as the user."""
        return (self.users is None or user in self.users) and (self.profiles is None or profile in self.profiles)


@dataclass(frozen=True, slots=True)
class AuthorizedDevices:
    """The file as it was when it was read."""

    lines: tuple[Line, ...]

    def allows(self, fingerprint: str, profile: str, user: str) -> bool:
        """Whether any line admits the device to this session."""
        return any(line.fingerprint == fingerprint and line.allows(profile, user) for line in self.lines)


def read(path: Path) -> AuthorizedDevices:
    """Read the file. Raises :class:`AuthorizedDevicesError`; an empty file is nobody and no error."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise AuthorizedDevicesError(f"authorized_devices: {path} cannot be read: {error}") from error
    numbered = enumerate(text.splitlines(), start=1)
    return AuthorizedDevices(
        tuple(
            _line(raw, f"authorized_devices: {path}, line {number}")
            for number, raw in numbered
            if raw.strip() and not raw.lstrip().startswith("#")
        )
    )


def _line(raw: str, where: str) -> Line:
    fingerprint, *rest = raw.split()
    if _FINGERPRINT.fullmatch(fingerprint) is None:
        raise AuthorizedDevicesError(f"{where}: begins with no SHA256: fingerprint")
    name = list(takewhile(lambda word: "=" not in word, rest))
    if not name:
        raise AuthorizedDevicesError(f"{where}: the device has no name")
    found: dict[str, frozenset[str]] = {}
    for option in rest[len(name) :]:
        key, _, value = option.partition("=")
        if key not in ("users", "profiles") or key in found:
            raise AuthorizedDevicesError(f"{where}: only one users= and one profiles= may follow the name")
        found[key] = frozenset(value.split(",")) - {""}
    return Line(fingerprint, " ".join(name), found.get("users"), found.get("profiles"))
