import os
import stat
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device.failure import Failure
from bothy_device.state import Login, Logins, home, origin_of, replace


def made(server="https://relay.example.com"):
    return Login(
        server=server,
        device_id=uuid4(),
        device_name="laptop",
        person_name="Alex",
        signing_key=Ed25519PrivateKey.generate().private_bytes_raw(),
        channel_key=X25519PrivateKey.generate().private_bytes_raw(),
    )


def test_where_the_folder_is(monkeypatch, tmp_path):
    monkeypatch.setenv("BOTHY_HOME", str(tmp_path / "a"))
    assert home() == tmp_path / "a"
    monkeypatch.delenv("BOTHY_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "b"))
    assert home() == tmp_path / "b" / "bothy"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / ".config" / "bothy"


def test_a_login_is_found_again(tmp_path):
    login = made()
    Logins(tmp_path / "s").store(login)
    assert Logins(tmp_path / "s").load(None) == login
    assert Logins(tmp_path / "s").load("RELAY.example.com:443") == login


def test_nobody_else_can_read_it(tmp_path):
    before = os.umask(0)
    try:
        Logins(tmp_path / "s").store(made())
    finally:
        os.umask(before)
    for each in (tmp_path / "s", *(tmp_path / "s").rglob("*")):
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600)


def test_a_file_that_others_can_read_is_refused(tmp_path):
    logins = Logins(tmp_path)
    logins.store(made())
    (file,) = (tmp_path / "servers").iterdir()
    file.chmod(0o640)
    with pytest.raises(Failure, match="run chmod 600 on it"):
        logins.load(None)


def test_the_last_login_is_the_default_and_another_can_be_named(tmp_path):
    first, second = made(), made("http://127.0.0.1:8080")
    logins = Logins(tmp_path)
    logins.store(first)
    logins.store(second)
    assert logins.load(None) == second
    assert logins.load(first.server) == first
    logins.remove(second)
    with pytest.raises(Failure, match="not logged in"):
        logins.load(None)
    assert logins.load(first.server) == first


def test_not_logged_in_says_how(tmp_path):
    with pytest.raises(Failure, match="not logged in: run bothy login URL"):
        Logins(tmp_path).load(None)
    with pytest.raises(Failure, match=r"not logged in at https://relay\.example\.com: run bothy login"):
        Logins(tmp_path).load("relay.example.com")


def test_a_broken_file_says_which(tmp_path):
    logins = Logins(tmp_path)
    logins.store(made())
    (file,) = (tmp_path / "servers").iterdir()
    file.write_text("{}")
    with pytest.raises(Failure, match=r"cannot read .*relay\.example\.com\.json"):
        logins.load(None)


def test_a_write_is_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "known_hosts"
    replace(file, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match="No space left on device"):
        replace(file, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["known_hosts"]
    assert file.read_bytes() == b"old"


def test_a_folder_that_cannot_be_made_is_told_before_a_code_is_spent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="set BOTHY_HOME"):
        Logins(tmp_path / "file" / "s").check_writable()
    Logins(tmp_path / "new" / "s").check_writable()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("bad", ["", "ftp://relay.example.com", "https://", "https://alex@relay.example.com"])
def test_what_is_no_address(bad):
    with pytest.raises(Failure, match="no address of a relay"):
        origin_of(bad)
