"""All signing keys as one text: a copy for another node, and one half of a backup (the other is the database).

The text opens whatever the keys open. It is written for its owner alone, and read completely before anything is stored.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from bothy_server.identity.adapters.keystore.rotation import SigningKey
from bothy_server.identity.adapters.keystore.store import (
    KeyStoreError,
    as_body,
    from_body,
    key_files,
    load_keys,
    remove_key,
    store_key,
)

_KIND = "bothy-signing-keys/v1"


def bundle_text(keys: tuple[SigningKey, ...]) -> str:
    """The keys with their ids, times and private parts."""
    return json.dumps({"kind": _KIND, "keys": [as_body(each) for each in keys]}, indent=1) + "\n"


def write_bundle(file: Path, keys: tuple[SigningKey, ...]) -> None:
    """Make ``file`` with mode 0600. Raises :class:`KeyStoreError` when it exists or cannot be written."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise KeyStoreError(f"{file} exists; name another file or move it away") from error
    except OSError as error:
        raise KeyStoreError(f"{file}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(bundle_text(keys))
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        file.unlink()  # half a copy would be found out on the day it is needed
        raise KeyStoreError(f"{file}: {error.strerror}") from error


def read_bundle(text: str) -> tuple[SigningKey, ...]:
    """The keys of a bundle. Raises :class:`KeyStoreError` when one of them, or anything around them, is not right."""
    try:
        body = json.loads(text)
        if body["kind"] != _KIND or not body["keys"]:
            raise ValueError("another kind, or empty")
        keys = tuple(_key(each) for each in body["keys"])
        if len({each.kid for each in keys}) != len(keys):
            raise ValueError("a key twice")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise KeyStoreError(
            "this is no complete copy made by `bothy-server keys export`; nothing was stored"
        ) from error
    return keys


def import_keys(directory: Path, keys: tuple[SigningKey, ...]) -> tuple[SigningKey, ...]:
    """Store those that ``directory`` lacks or holds as not retired, and return them: all or none. None comes back to use.

    Raises :class:`KeyStoreError` for a directory that is not in order and for a key that it holds with other times.
    """
    held = {each.kid: each for each in load_keys(directory)} if key_files(directory) else {}
    new = tuple(each for each in keys if _is_news(each, held.get(each.kid), directory))
    for done, each in enumerate(new):
        try:
            store_key(directory, each)
        except KeyStoreError:
            for stored in new[:done]:
                _restore(directory, stored, held.get(stored.kid))
            raise
    return new


def _is_news(key: SigningKey, mine: SigningKey | None, directory: Path) -> bool:
    if mine is None:
        return True
    if (mine.created_at, mine.signs_from) != (key.created_at, key.signs_from):
        raise KeyStoreError(f"{directory} holds {key.kid} with other times; nothing was stored")
    return key.retired_at is not None and (mine.retired_at is None or key.retired_at < mine.retired_at)


def _restore(directory: Path, stored: SigningKey, before: SigningKey | None) -> None:
    if before is None:
        remove_key(directory, stored)
    else:
        store_key(directory, before)


def _key(body: dict[str, str]) -> SigningKey:
    key = from_body(body)
    if body["kid"] != key.kid:
        raise ValueError("the id is not that of the key")
    return key
