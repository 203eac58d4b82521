"""The file ``authorized_devices``: which devices may open a terminal here, whatever the server says.

One line per device: ``SHA256:`` fingerprint of the channel key, name, optional ``users=a,b`` and ``profiles=a,b``. Empty
lines and lines that begin with ``#`` do not count; of several lines of one device each admits. ``bothy device show``
prints the line of a device.

A file in doubt admits nobody: one that another account may write, one with a line that is not understood, and one whose
last line does not end, since half a line may admit to more than the whole.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""Some ten thousand lines. The file is read at each handshake."""

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class AuthorizedDevicesError(Exception):
    """The file is missing, unreadable or malformed, or others may write it. The message is one line for the operator."""


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
    where = f"authorized_devices: {path}"
    try:
        text = _content(path, where).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise AuthorizedDevicesError(f"{where} cannot be read: {error}") from error
    *lines, rest = text.split("\n")  # not splitlines: what separates lines for it may stand in a name
    if rest:
        raise AuthorizedDevicesError(f"{where}: its last line has no end; is it being written?")
    numbered = enumerate((line.strip() for line in lines), start=1)
    return AuthorizedDevices(
        tuple(_line(line, f"{where}, line {number}") for number, line in numbered if line and not line.startswith("#"))
    )


def others_may_write(found: os.stat_result) -> bool:
    """Whether an account beside root and this one may write a file, or put another one into a folder."""
    sticky = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)  # others replace nothing in it
    return (bool(found.st_mode & _OTHERS_WRITE) and not sticky) or found.st_uid not in (0, os.geteuid())


def _content(path: Path, where: str) -> bytes:
    """Raises :class:`AuthorizedDevicesError`, ``OSError`` and ``ValueError``."""
    with open(path, "rb", opener=_opened) as file:
        found = os.fstat(file.fileno())  # of what is read, also behind a link
        if not stat.S_ISREG(found.st_mode):
            raise AuthorizedDevicesError(f"{where} is no file")
        if others_may_write(found):
            raise AuthorizedDevicesError(f"{where}: another account may write it")
        for folder in (
            *path.absolute().parents,
            *path.resolve().parents,
        ):  # whoever may write one puts another below it
            if others_may_write(folder.stat()):
                raise AuthorizedDevicesError(f"{where}: another account may write the folder {folder}")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise AuthorizedDevicesError(f"{where} has more than {MAX_BYTES} bytes")
    return content


def _opened(path: str, flags: int) -> int:
    """Without waiting for whoever writes into a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _line(line: str, where: str) -> Line:
    if not line.replace("\t", " ").isprintable():
        raise AuthorizedDevicesError(f"{where}: holds a character that cannot be seen")
    fingerprint, *rest = line.split()
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
        words = value.split(",")
        if not all(words) or any(word.startswith("@") for word in words):
            raise AuthorizedDevicesError(f"{where}: {key}= takes names with commas between them, and no groups")
        found[key] = frozenset(words)
    return Line(fingerprint, " ".join(name), found.get("users"), found.get("profiles"))
