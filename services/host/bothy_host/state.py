"""What the host keeps on disk: its keys and its pairing, in one file that is replaced as a whole.

``state_dir`` is 0700 and ``host.json`` in it 0600. A write is durable before it counts: the join value must be on the
disk before the report confirms it (``docs/spec/cluster.md``, D5).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Meta, Struct

from bothy_wire.limits import KEY_BYTES

_RawKey = Annotated[bytes, Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]


class StateError(Exception):
    """The state cannot be read, written or locked. The message is one line for the operator."""


class State(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One pairing. ``audience`` is the canonical origin that was dialled; every signature names it."""

    audience: str
    host_id: UUID
    name: str
    pairing_seq: int
    join: str
    signing_key: _RawKey
    channel_key: _RawKey

    @property
    def signer(self) -> Ed25519PrivateKey:
        """The key that proves who this host is."""
        return Ed25519PrivateKey.from_private_bytes(self.signing_key)

    @property
    def channel(self) -> X25519PrivateKey:
        """The static key of the end-to-end channel; devices pin its public half."""
        return X25519PrivateKey.from_private_bytes(self.channel_key)

    @property
    def channel_public(self) -> bytes:
        """What devices pin and people compare."""
        return self.channel.public_key().public_bytes_raw()


def load(state_dir: Path) -> State:
    """Read the pairing. Raises :class:`StateError` when there is none."""
    path = state_dir / "host.json"
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise StateError(f"{path}: this host is not paired; run 'bothy-host pair URL'") from None
    except OSError as error:
        raise StateError(f"{path}: cannot be read: {error}") from error
    try:
        return msgspec.json.decode(raw, type=State)
    except msgspec.MsgspecError as error:
        raise StateError(f"{path}: is damaged ({error}); pair this host again") from error


def save(state_dir: Path, state: State) -> None:
    """Replace the state; when this returns it survives a power cut. Raises :class:`StateError`."""
    path, fresh = state_dir / "host.json", state_dir / "host.json.new"
    try:
        fresh.unlink(missing_ok=True)  # left by a power cut, or put there by somebody else
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StateError(f"{path}: cannot be written: {error}") from error


class Pairing:
    """The state in use. What the server confirms is on the disk before anything goes on."""

    def __init__(self, state_dir: Path, state: State) -> None:
        self._state_dir = state_dir
        self.state = state

    async def confirm(self, *, pairing_seq: int, join: str) -> None:
        """Store what ``host.identified`` said. Raises :class:`StateError`."""
        confirmed = msgspec.structs.replace(self.state, pairing_seq=pairing_seq, join=join)
        await asyncio.to_thread(save, self._state_dir, confirmed)
        self.state = confirmed


def check_folder(state_dir: Path) -> None:
    """That the folder is ours and closed to others. Raises :class:`StateError`, or ``OSError`` when it cannot be looked at."""
    folder = state_dir.stat()
    if folder.st_uid != os.geteuid():
        raise StateError(f"{state_dir}: belongs to another account; run 'chown' on it or set another state_dir")
    if folder.st_mode & 0o077:
        raise StateError(f"{state_dir}: others may enter it; run 'chmod 700 {state_dir}'")


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Own the folder, made when missing, while the block runs. Raises :class:`StateError` when another process does."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(state_dir)
        descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StateError(f"{state_dir}: cannot be used: {error}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(f"{state_dir}: another bothy-host uses it; stop that one first") from None
        yield
    finally:
        os.close(descriptor)
