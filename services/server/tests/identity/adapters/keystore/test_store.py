"""The folder of signing keys: durable, private, and refused as soon as anything is wrong with it."""

import errno
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bothy_server.identity.adapters.keystore import store
from bothy_server.identity.adapters.keystore.store import KeyStoreError, add_key, file_ages, load_keys, retire_key
from bothy_wire.signing import thumbprint

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "below" / "keys"


@pytest.fixture
def key_file(folder):
    made = add_key(folder, NOW, NOW)
    return folder / f"{made.kid}.json"


def spoil(key_file, **fields):
    body = json.loads(key_file.read_text()) | fields
    key_file.write_text(json.dumps({name: value for name, value in body.items() if value is not None}))


def test_a_key_is_read_as_it_was_made(folder):
    made = add_key(folder, NOW, NOW + HOUR)
    (read,) = load_keys(folder)
    assert (read.kid, read.public, read.created_at, read.signs_from) == (made.kid, made.public, NOW, NOW + HOUR)
    assert read.kid == thumbprint(read.public)
    assert read.retired_at is None


def test_folder_and_file_are_the_accounts_alone(folder, key_file):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == [key_file]


def test_keys_come_in_the_order_in_which_they_sign(folder):
    later, earlier = add_key(folder, NOW, NOW + HOUR), add_key(folder, NOW, NOW)
    assert [each.kid for each in load_keys(folder)] == [earlier.kid, later.kid]


def test_a_retired_key_says_so(folder, key_file):
    (key,) = load_keys(folder)
    assert retire_key(folder, key, NOW + HOUR) == load_keys(folder)[0]
    assert load_keys(folder)[0].retired_at == NOW + HOUR
    assert list(folder.iterdir()) == [key_file]


def test_a_file_is_as_old_as_it_is_here(folder, key_file, monkeypatch):
    now = time.time()
    os.utime(key_file, (0, 0))
    monkeypatch.setattr(store.time, "time", lambda: now + 60)
    assert file_ages(folder) == {key_file.stem: pytest.approx(60, abs=5)}
    monkeypatch.setattr(store.time, "time", lambda: now - 60)
    assert file_ages(folder) == {key_file.stem: 0}


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o770, 0o777])
def test_a_folder_that_others_may_enter_is_refused(folder, key_file, mode):
    folder.chmod(mode)
    with pytest.raises(KeyStoreError, match="chmod 700"):
        load_keys(folder)


def test_a_folder_that_is_not_there_or_empty_says_what_to_run(folder):
    with pytest.raises(KeyStoreError, match="No such file or directory; run `bothy-server keys init`"):
        load_keys(folder)
    folder.mkdir(mode=0o700, parents=True)
    (folder / "half-written.tmp").write_text("{")
    with pytest.raises(KeyStoreError, match="holds no signing key; run `bothy-server keys init`"):
        load_keys(folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"private_key": "AAAA"},
        {"private_key": "not base64!"},
        {"private_key": 7.5},
        {"private_key": None},
        {"signs_from": "tomorrow"},
        {"signs_from": None},
        {"created_at": 7},
        {"retired_at": "never"},
        {"signs_from": "2026-01-02T03:04:05"},
    ],
)
def test_a_damaged_key_is_named_and_never_quoted(folder, key_file, fields):
    spoil(key_file, **fields)
    with pytest.raises(KeyStoreError, match=key_file.name) as refusal:
        load_keys(folder)
    assert "restore it" in str(refusal.value)
    assert str(fields.get("private_key")) not in str(refusal.value).replace("None", "")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_key_is_refused(folder, key_file, content):
    key_file.write_bytes(content)
    with pytest.raises(KeyStoreError, match="is no signing key of bothy"):
        load_keys(folder)


def test_a_key_that_cannot_be_stored_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyStoreError, match="file/keys: Not a directory"):
        add_key(tmp_path / "file" / "keys", NOW, NOW)


def test_a_key_that_could_not_be_stored_leaves_nothing(folder, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KeyStoreError, match="No space left on device"):
        add_key(folder, NOW, NOW)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_open_to_others_gets_no_first_key(folder):
    folder.mkdir(mode=0o750, parents=True)
    with pytest.raises(KeyStoreError, match="chmod 700"):
        add_key(folder, NOW, NOW)
    assert list(folder.iterdir()) == []


def test_a_folder_of_another_account_gets_no_key(folder, key_file, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(KeyStoreError, match="belongs to another account; run this as the account"):
        add_key(folder, NOW, NOW)
    assert list(folder.iterdir()) == [key_file]


def test_what_may_not_be_looked_at_is_not_empty(folder, key_file, monkeypatch):
    def shut(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for name in ("iterdir", "read_text"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, name, shut)
            with pytest.raises(KeyStoreError, match=r"Permission denied; .*the account that the relay runs as"):
                load_keys(folder)


def test_no_new_key_has_a_name_that_a_command_takes_for_an_option(folder, monkeypatch):
    names = iter(["-0WvLq", "-h", "a-0"])
    monkeypatch.setattr(store, "thumbprint", lambda _: next(names))
    assert add_key(folder, NOW, NOW).kid == "a-0"
