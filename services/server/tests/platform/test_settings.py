"""What fits together and what does not. A limit that silently differed from what was asked for would mislead."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError

import bothy_server
from bothy_server.platform.load_settings import keys
from bothy_server.platform.settings import Settings

URL = "postgresql://bothy:hush@db/bothy"
REQUIRED = {"database": {"url": URL}, "secrets": {"signing_key_dir": "/keys"}}


def settings(**groups) -> Settings:
    return Settings.model_validate(REQUIRED | groups)


def test_the_defaults_are_those_of_the_design():
    made = settings()
    assert (made.cluster.mode, made.hosts.pairing) == ("single", "confirm")
    assert (made.terminal.open_timeout, made.terminal.detach_grace, made.terminal.max_duration) == (20, 43200, 86400)
    assert (made.wire.max_frame_bytes, made.relay.socket_buffer_bytes) == (65536 + 256, None)
    assert made.secrets.signing_key_dir == Path("/keys")
    assert made.database.listen == made.database.url


@pytest.mark.parametrize(
    ("group", "values", "message"),
    [
        ("terminal", {"detach_grace": "25 h"}, "detach_grace must not exceed max_duration"),
        ("terminal", {"idle_timeout": "25 h"}, "idle_timeout must not exceed max_duration"),
        ("terminal", {"max_duration": "1 h"}, "must not exceed max_duration"),
        ("terminal", {"redial_after": "10 s"}, "redial_after must be shorter"),
        ("server", {"internal_listen": "127.0.0.1:8080"}, "must differ"),
        ("database", {"url": URL, "listen_echo_timeout": "16 s"}, "listen_echo_timeout must not exceed"),
        ("database", {"url": URL, "statement_timeout": "6 s"}, "statement_timeout must not exceed transaction_timeout"),
        ("database", {"url": URL, "lock_timeout": "6 s"}, "lock_timeout must not exceed transaction_timeout"),
        ("database", {"url": URL, "idle_in_transaction_timeout": "6 s"}, "less than or equal to 5"),
        ("database", {"url": ""}, "an address like postgresql://"),
        ("event_log", {"poll_interval": "7 d"}, "poll_interval must be shorter"),
        ("secrets", {"signing_key_dir": "/k", "reload_interval": "1 h"}, "reload_interval must be shorter"),
        ("secrets", {"signing_key_dir": "keys"}, "absolute path"),
        ("wire", {"max_frame_bytes": "64 KiB", "max_unidentified_frame_bytes": "65 KiB"}, "must not exceed"),
        ("wire", {"max_frame_bytes": "63 KiB"}, "greater than or equal to 65536"),
        ("relay", {"buffer_low_bytes": "256 KiB"}, "buffer_low_bytes must be below"),
        ("cluster", {"mode": "many"}, "'single' or 'multi'"),
        ("cluster", {"status_interval": "1 d"}, "node_forget_after must be longer"),
        ("cluster", {"clock_warn": 0}, "greater than 0"),
        ("cluster", {"clock_warn": float("inf")}, "finite"),
        ("terminal", {"max_sessions_per_host": 0}, "greater than 0"),
    ],
)
def test_what_does_not_fit_is_refused(group, values, message):
    with pytest.raises(ValidationError, match=message):
        settings(**{group: values})


def test_origins_are_kept_in_canonical_form():
    made = settings(server={"public_origins": "https://Relay.example.com:443/, http://localhost:8080"})
    assert made.server.public_origins == ("https://relay.example.com", "http://localhost:8080")


def test_a_secret_is_not_shown():
    assert "hush" not in repr(settings())


def with_file(file: Path, content: str = "p@ss word'\\\n", **database) -> Settings:
    file.write_text(content)
    return settings(database={"url": "postgresql://bothy@db/bothy", "password_file": str(file)} | database)


def test_the_password_comes_from_a_file(tmp_path):
    made = with_file(tmp_path / "password", listen_url="postgresql://bothy@primary/bothy").database
    for address, host in ((made.dialled, "db"), (made.listen, "primary")):
        parts = conninfo_to_dict(address.get_secret_value())
        assert parts == {"user": "bothy", "password": "p@ss word'\\", "dbname": "bothy", "host": host}


def test_a_password_from_a_file_is_not_shown(tmp_path):
    made = with_file(tmp_path / "password", "hush\n")
    for shown in (repr(made), str(made), made.model_dump_json(fallback=str), repr(made.database.dialled)):
        assert "hush" not in shown


@pytest.mark.parametrize(
    ("content", "database", "message"),
    [
        ("", {}, "must hold one line"),
        ("\n", {}, "must hold one line"),
        ("hush\nhush\n", {}, "must hold one line"),
        ("hush\n", {"url": URL}, "url names a password"),
        ("hush\n", {"listen_url": URL}, "listen_url names a password"),
        ("hush\n", {"password_file": "/nonexistent/password"}, "No such file"),
    ],
)
def test_a_password_file_that_does_not_fit_is_refused(content, database, message, tmp_path):
    with pytest.raises(ValidationError, match=message) as refused:
        with_file(tmp_path / "password", content, **database)
    assert "hush" not in str(refused.value)


def test_nothing_can_be_changed_later():
    with pytest.raises(ValidationError, match="frozen"):
        settings().terminal.open_timeout = 5


def test_an_own_address_for_listening():
    made = settings(database={"url": URL, "listen_url": URL + "2"})
    assert made.database.listen.get_secret_value() == URL + "2"


SOURCES = Path(bothy_server.__file__).parent


@pytest.mark.parametrize("key", [key for key, _ in keys()])
def test_every_key_changes_something(key):
    """A key that nothing reads would be a promise that nobody keeps."""
    name = key.rpartition(".")[2]
    readers = [path for path in SOURCES.rglob("*.py") if path.name != "settings.py" and f".{name}" in path.read_text()]
    assert readers


@pytest.mark.parametrize("mode", ["single", "multi"])
def test_cluster_mode_key(mode):
    assert settings(cluster={"mode": mode}).cluster.mode == mode
    assert settings().cluster.mode == "single"
    for other in ("many", "SINGLE", "", None, 1):
        with pytest.raises(ValidationError) as refused:
            settings(cluster={"mode": other})
        (error,) = refused.value.errors()
        assert (error["loc"], error["msg"]) == (("cluster", "mode"), "Input should be 'single' or 'multi'")
