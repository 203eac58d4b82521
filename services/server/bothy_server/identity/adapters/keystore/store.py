"""The server's signing keys: one directory, one file each, shared by all nodes (``secrets.signing_key_dir``).

A key is published (in the JWK set) from the moment its file exists; :mod:`rotation` tells when it signs.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import tempfile
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bothy_server.identity.adapters.keystore.rotation import SigningKey
from bothy_wire.signing import thumbprint

_AS_ITS_OWNER = "run this as the account that the relay runs as"


class KeyStoreError(Exception):
    """The directory cannot be used; the message says what to do."""


def load_keys(directory: Path) -> tuple[SigningKey, ...]:
    """All keys, oldest first. Raises :class:`KeyStoreError` for a directory that is absent, open to others or empty."""
    files = key_files(directory)
    if not files:
        lacks = " holds no signing key" if directory.exists() else ": No such file or directory"
        raise KeyStoreError(f"{directory}{lacks}; run `bothy-server keys init`")
    return tuple(sorted((_load(each) for each in files), key=lambda each: (each.signs_from, each.kid)))


def key_files(directory: Path) -> list[Path]:
    """The files of the store; none for an absent directory. Raises :class:`KeyStoreError` for one that is open to others."""
    try:
        status = directory.stat()
        files = sorted(
            each for each in directory.iterdir() if each.suffix == ".json"
        )  # glob hides that it may not look
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise KeyStoreError(f"{directory}: {error.strerror}; {_AS_ITS_OWNER}") from error
    except OSError as error:
        raise KeyStoreError(f"{directory}: {error.strerror}") from error
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise KeyStoreError(f"{directory} is open to other accounts; run `chmod 700` on it")
    return files


def file_ages(directory: Path) -> dict[str, float]:
    """For each key, the seconds since its file came to this directory, whatever times it bears inside.

    That is when the file was changed, by this machine's clock; copying it, even with its times, begins anew.
    """
    now = time.time()
    try:
        return {each.stem: max(0.0, now - each.stat().st_ctime) for each in key_files(directory)}
    except OSError as error:
        raise KeyStoreError(f"{directory}: {error.strerror}") from error


def add_key(directory: Path, created_at: datetime, signs_from: datetime) -> SigningKey:
    """Make a key and store it durably. Raises :class:`KeyStoreError` when the directory cannot be written."""
    made = _new_key(created_at, signs_from)
    while made.kid.startswith("-"):  # people give it to commands, which would take it for an option
        made = _new_key(created_at, signs_from)
    store_key(directory, made)
    return made


def _new_key(created_at: datetime, signs_from: datetime) -> SigningKey:
    key = Ed25519PrivateKey.generate()
    return SigningKey(thumbprint(key.public_key().public_bytes_raw()), key, created_at, signs_from)


def store_key(directory: Path, key: SigningKey) -> None:
    """Write a key durably, and the directory if it is absent. Raises :class:`KeyStoreError` when that cannot be done."""
    key_files(directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if directory.stat().st_uid != os.geteuid():  # root may write, but the owner could not read it
            raise KeyStoreError(f"{directory} belongs to another account; {_AS_ITS_OWNER}")
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as file:  # mode 0600
            try:
                json.dump(as_body(key), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).rename(directory / f"{key.kid}.json")
            except OSError:
                Path(file.name).unlink()
                raise
        _sync(directory)
    except OSError as error:
        raise KeyStoreError(f"{directory}: {error.strerror}") from error


def retire_key(directory: Path, key: SigningKey, retired_at: datetime) -> SigningKey:
    """Write durably that it signs no more, and verifies until ``retired_at``. Raises :class:`KeyStoreError`."""
    retired = replace(key, retired_at=retired_at)
    store_key(directory, retired)
    return retired


def remove_key(directory: Path, key: SigningKey) -> None:
    """Take a key out that was just stored."""
    (directory / f"{key.kid}.json").unlink()


def as_body(key: SigningKey) -> dict[str, str]:
    """The object that a file of the store holds: it contains the private key."""
    body = {
        "kid": key.kid,
        "created_at": key.created_at.isoformat(),
        "signs_from": key.signs_from.isoformat(),
        "private_key": base64.b64encode(key.key.private_bytes_raw()).decode(),
    }
    return body if key.retired_at is None else body | {"retired_at": key.retired_at.isoformat()}


def from_body(body: Any) -> SigningKey:
    """The reverse of :func:`as_body`. Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is no key."""
    key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(body["private_key"], validate=True))
    retired = body.get("retired_at")
    return SigningKey(
        thumbprint(key.public_key().public_bytes_raw()),
        key,
        _time(body["created_at"]),
        _time(body["signs_from"]),
        None if retired is None else _time(retired),
    )


def _time(written: str) -> datetime:
    time = datetime.fromisoformat(written)
    if time.tzinfo is None:
        raise ValueError("a time without its zone")
    return time


def _sync(directory: Path) -> None:
    """Make a name in the directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load(file: Path) -> SigningKey:
    try:
        text = file.read_text()
    except OSError as error:
        raise KeyStoreError(f"{file}: {error.strerror}; give it to the account that the relay runs as") from error
    except UnicodeDecodeError as error:
        raise KeyStoreError(f"{file} is no signing key of bothy (no text); restore it or move it away") from error
    try:
        return from_body(json.loads(text))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise KeyStoreError(
            f"{file} is no signing key of bothy ({type(error).__name__}); restore it or move it away"
        ) from error
