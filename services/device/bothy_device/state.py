"""The state folder: who this device is at each server. Keys are made here and never leave the machine.

``$BOTHY_HOME``, else ``$XDG_CONFIG_HOME/bothy``, else ``~/.config/bothy``; 0700, its files 0600, each replaced as a whole.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from bothy_device.failure import Failure
from bothy_wire.signing import canonical_origin


class Login(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """This device at one server."""

    server: str
    """Canonical origin: the audience of every signature."""
    device_id: UUID
    device_name: str
    person_name: str
    signing_key: bytes
    channel_key: bytes

    @property
    def signer(self) -> Ed25519PrivateKey:
        """Proves this device to the server."""
        return Ed25519PrivateKey.from_private_bytes(self.signing_key)

    @property
    def channel(self) -> X25519PrivateKey:
        """Proves this device to hosts, end to end."""
        return X25519PrivateKey.from_private_bytes(self.channel_key)


def home() -> Path:
    """The state folder; it need not exist."""
    named = os.environ.get("BOTHY_HOME")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "bothy"


def replace(path: Path, data: bytes) -> None:
    """Write a file of the state folder: whole or not at all, readable by its owner only. Raises :class:`Failure`."""
    try:
        _make_private(path.parent)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)  # noqa: PTH105 - the pair of mkstemp's plain name
        except BaseException:
            os.unlink(name)  # noqa: PTH108 - as above
            raise
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error


def _make_private(folder: Path) -> None:
    """``mkdir(parents=True)`` would give the mode to the last folder only."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class Logins:
    """The logins of a state folder, one file per server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._default = folder / "default"

    def _path(self, origin: str) -> Path:
        return self._folder / "servers" / f"{quote(origin, safe='')}.json"

    def load(self, server: str | None) -> Login:
        """The login at ``server``, or at the default one. Raises :class:`Failure`, which says how to log in."""
        origin = origin_of(server) if server else self._default_origin()
        login = self.find(origin)
        if login is None:
            raise Failure(f"not logged in at {origin}: run bothy login {origin}")
        return login

    def find(self, origin: str) -> Login | None:
        """The login at a canonical origin. A file that others can read is refused, like ssh refuses such a key."""
        path = self._path(origin)
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise Failure(f"others can read {path}: run chmod 600 on it")
                return msgspec.json.decode(file.read(), type=Login)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise Failure(f"cannot read {path}: {error}") from error

    def store(self, login: Login) -> None:
        """Keep a login and make its server the default one."""
        replace(self._path(login.server), msgspec.json.encode(login))
        replace(self._default, login.server.encode() + b"\n")

    def remove(self, login: Login) -> None:
        """Forget a login, its keys included."""
        self._path(login.server).unlink(missing_ok=True)
        if self._default.exists() and self._default_origin() == login.server:
            self._default.unlink()

    def check_writable(self) -> None:
        """Raises :class:`Failure` where a login could not be kept, before a code is spent on it. Writes nothing."""
        nearest = next(each for each in (self._folder, *self._folder.absolute().parents) if each.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise Failure(f"cannot write to {nearest}: set BOTHY_HOME to a folder of yours")

    def _default_origin(self) -> str:
        try:
            return origin_of(self._default.read_text().strip())
        except FileNotFoundError:
            raise Failure("not logged in: run bothy login URL with the invite code you were given") from None
        except OSError as error:
            raise Failure(f"cannot read {self._default}: {error.strerror}") from error


def origin_of(url: str) -> str:
    """The canonical origin of an address that a person typed; ``https://`` may be left out. Raises :class:`Failure`."""
    try:
        return canonical_origin(url if "://" in url else f"https://{url}")
    except ValueError:
        raise Failure(f"{url!r} is no address of a relay; one looks like https://relay.example.com") from None
