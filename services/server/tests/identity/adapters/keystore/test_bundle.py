"""Copies of the key store: complete, private, and all or nothing on the way in."""

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bothy_server.identity.adapters.keystore import bundle
from bothy_server.identity.adapters.keystore.bundle import bundle_text, import_keys, read_bundle, write_bundle
from bothy_server.identity.adapters.keystore.store import KeyStoreError, add_key, as_body, load_keys, store_key

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def keys(tmp_path):
    add_key(tmp_path / "first", NOW, NOW)
    add_key(tmp_path / "first", NOW, NOW + HOUR)
    return load_keys(tmp_path / "first")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "second" / "keys"


def bodies(keys):
    return [as_body(each) for each in keys]


def test_a_copy_keeps_ids_times_and_keys(keys, folder):
    retired = (replace(keys[0], retired_at=NOW + 2 * HOUR), keys[1])
    assert import_keys(folder, read_bundle(bundle_text(retired))) != ()
    assert bodies(load_keys(folder)) == bodies(retired)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


def test_a_second_import_stores_what_is_new_only(keys, folder):
    assert bodies(import_keys(folder, keys[:1])) == bodies(keys[:1])
    assert bodies(import_keys(folder, keys)) == bodies(keys[1:])
    assert import_keys(folder, keys) == ()


def test_the_file_is_its_owners_alone_and_is_never_overwritten(keys, tmp_path):
    file = tmp_path / "copy"
    write_bundle(file, keys)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    with pytest.raises(KeyStoreError, match="exists"):
        write_bundle(file, keys[:1])
    assert file.read_text() == before


def test_a_link_that_waits_is_not_followed(keys, tmp_path):
    (tmp_path / "copy").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyStoreError, match="exists"):
        write_bundle(tmp_path / "copy", keys)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body.update(kind="bothy-signing-keys/v2"),
        lambda body: body.update(keys=[]),
        lambda body: body.update(keys=["x"]),
        lambda body: body["keys"].append(body["keys"][0]),
        lambda body: body["keys"][1].update(kid=body["keys"][0]["kid"]),
        lambda body: body["keys"][1].update(private_key="AAAA"),
        lambda body: body["keys"][1].update(signs_from="2026-01-02T03:04:05"),
        lambda body: body["keys"][1].pop("created_at"),
    ],
)
def test_a_copy_with_one_fault_is_refused_as_a_whole(keys, spoil):
    body = json.loads(bundle_text(keys))
    spoil(body)
    with pytest.raises(KeyStoreError, match="nothing was stored"):
        read_bundle(json.dumps(body))


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "null", "{}", '{"kind": "bothy-signing-keys/v1"'])
def test_what_is_no_copy_is_refused(text):
    with pytest.raises(KeyStoreError, match="nothing was stored"):
        read_bundle(text)


def test_a_key_with_other_times_stops_the_whole_import(keys, folder):
    import_keys(folder, (replace(keys[1], signs_from=NOW + 5 * HOUR),))
    with pytest.raises(KeyStoreError, match="with other times; nothing was stored"):
        import_keys(folder, keys)
    assert len(load_keys(folder)) == 1


def test_a_retirement_is_carried_and_never_taken_back(keys, folder):
    import_keys(folder, keys)
    later, sooner = (replace(keys[0], retired_at=NOW + hours * HOUR) for hours in (3, 2))
    assert import_keys(folder, (later, keys[1])) == (later,)
    assert import_keys(folder, (sooner, keys[1])) == (sooner,)
    for older in (keys, (later, keys[1])):
        assert import_keys(folder, older) == ()
    assert {each.kid: each.retired_at for each in load_keys(folder)} == {
        keys[0].kid: sooner.retired_at,
        keys[1].kid: None,
    }


def test_a_folder_that_is_open_to_others_gets_no_key(keys, folder):
    folder.mkdir(mode=0o755, parents=True)
    with pytest.raises(KeyStoreError, match="chmod 700"):
        import_keys(folder, keys)
    assert list(folder.iterdir()) == []


def test_of_a_copy_that_cannot_be_stored_whole_nothing_stays(keys, folder, monkeypatch):
    def full(directory, key):
        if key.kid == keys[1].kid:
            raise KeyStoreError("no space left")
        store_key(directory, key)

    monkeypatch.setattr(bundle, "store_key", full)
    with pytest.raises(KeyStoreError, match="no space left"):
        import_keys(folder, keys)
    assert list(folder.iterdir()) == []

    store_key(folder, keys[0])
    with pytest.raises(KeyStoreError, match="no space left"):
        import_keys(folder, (replace(keys[0], retired_at=NOW), keys[1]))
    assert load_keys(folder) == keys[:1]
