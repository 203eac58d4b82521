"""Commands that administer persons and their devices, against a real database."""

import json
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest
from click.testing import CliRunner

from bothy_server.commands import bothy_server
from bothy_server.identity.adapters.keystore.store import add_key

NOBODY = "0199aaaa-0000-7000-8000-00000000000a"


@pytest.fixture
def run(database_url, tmp_path):
    now = datetime.now(UTC)
    add_key(tmp_path / "keys", now, now)
    environment = {
        "BOTHY_DATABASE__URL": database_url,
        "BOTHY_SECRETS__SIGNING_KEY_DIR": str(tmp_path / "keys"),
        "BOTHY_SERVER__PUBLIC_ORIGINS": "http://relay.example.com",
        "BOTHY_CONFIG": None,
    }
    return lambda *words: CliRunner().invoke(bothy_server, words, env=environment)


@pytest.fixture
def database(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def add_device(database):
    """A device of a person, whose keys nobody has."""

    def add(person, name):
        device_id = uuid4()
        database.execute(
            "INSERT INTO devices (id, person_id, name, kind, signing_key, channel_key)"
            " SELECT %s, id, %s, 'cli', sha256(%s), sha256(%s) FROM persons WHERE name = %s",
            [device_id, name, device_id.bytes, device_id.bytes, person],
        )
        return device_id

    return add


def refused(outcome):
    """The only line of a refusal."""
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    return line.removeprefix("bothy-server: ")


def test_a_person_is_added_and_invited(run):
    added = json.loads(run("person", "add", "Robin", "--json").stdout)
    assert set(added) == {"person_id", "invite"}
    assert UUID(added["person_id"])
    shown = run("person", "invite", "Robin").stdout
    assert shown.startswith("invite for Robin, to be used once:\n\n    ")
    assert refused(run("person", "add", "Robin")) == "There is a person called Robin already."
    assert refused(run("person", "invite", "Sam")).startswith("There is no person called Sam.")


def test_persons_are_listed_with_who_may_not_act(run, database, add_device):
    assert json.loads(run("person", "list", "--json").stdout) == {"persons": []}
    for words in (("Robin", "--operator"), ("Alex",), ("Sam",)):
        assert run("person", "add", *words).exit_code == 0
    for name in ("laptop", "phone"):
        add_device("Robin", name)
    database.execute("UPDATE devices SET last_used_at = '2026-01-02T03:04:05Z' WHERE name = 'phone'")
    add_device("Alex", "laptop")
    database.execute("UPDATE persons SET disabled_at = '2026-02-03T04:05:06Z' WHERE name = 'Sam'")
    assert run("person", "list").stdout.splitlines() == [
        "Alex  1 device  never used",
        "Robin  2 devices  last used 2026-01-02T03:04:05+00:00  operator",
        "Sam  0 devices  never used  disabled since 2026-02-03T04:05:06+00:00",
    ]
    listed = json.loads(run("person", "list", "--json").stdout)["persons"]
    assert listed[1] == {
        "person_id": listed[1]["person_id"],
        "name": "Robin",
        "is_operator": True,
        "devices": 2,
        "last_used_at": "2026-01-02T03:04:05+00:00",
        "disabled_at": None,
    }


def test_a_person_is_disabled_and_enabled_by_name(run, database):
    assert run("person", "add", "Robin", "--operator").exit_code == 0
    assert run("person", "disable", "Robin").stdout == "Robin is disabled\n", "the last operator, too"
    assert refused(run("person", "invite", "Robin")) == "Robin is disabled; enable them first."
    assert database.execute("SELECT count(*) FROM invites").fetchone() == (0,)
    told = json.loads(run("person", "enable", "Robin", "--json").stdout)
    assert (set(told), told["state"]) == ({"person_id", "state"}, "enabled")
    assert run("person", "invite", "Robin").exit_code == 0
    assert refused(run("person", "disable", "Sam")).startswith("There is no person called Sam.")
    codes = database.execute("SELECT code FROM audit_log WHERE action = 'person.state' ORDER BY position").fetchall()
    assert codes == [("disabled",), ("enabled",)]


def test_a_person_becomes_an_operator_and_none_again(run, database):
    assert run("person", "add", "Robin").exit_code == 0
    assert run("person", "operator", "Robin", "--on").stdout == "Robin is an operator\n"
    assert json.loads(run("person", "operator", "Robin", "--off", "--json").stdout)["is_operator"] is False
    assert run("person", "operator", "Robin").exit_code == 2
    codes = database.execute("SELECT code FROM audit_log WHERE action = 'person.state' ORDER BY position").fetchall()
    assert codes == [("operator",), ("no_operator",)]


def test_devices_are_listed_and_revoked_by_id(run, database, add_device):
    assert run("person", "add", "Robin").exit_code == 0
    laptop, phone = add_device("Robin", "laptop"), add_device("Robin", "phone")
    database.execute("UPDATE devices SET last_used_at = '2026-01-02T03:04:05Z' WHERE name = 'laptop'")
    database.execute("UPDATE devices SET id = '0199aaaa-0000-7000-8000-00000000000b' WHERE id = %s", [laptop])
    database.execute("UPDATE devices SET id = '0199aaaa-0000-7000-8000-00000000000c' WHERE id = %s", [phone])
    laptop, phone = NOBODY[:-1] + "b", NOBODY[:-1] + "c"
    assert run("device", "revoke", phone).stdout == f"phone ({phone}) is revoked\n"
    (revoked_at,) = database.execute("SELECT revoked_at FROM devices WHERE id = %s", [phone]).fetchone()
    when = revoked_at.astimezone(UTC).isoformat(timespec="seconds")
    assert run("device", "list", "Robin").stdout.splitlines() == [
        f"{laptop}  laptop  cli by invite  last used 2026-01-02T03:04:05+00:00",
        f"{phone}  phone  cli by invite  never used  revoked {when}",
    ]
    listed = json.loads(run("device", "list", "Robin", "--json").stdout)["devices"]
    assert json.loads(run("device", "revoke", phone, "--json").stdout) == listed[1]
    assert set(listed[1]) == {"device_id", "person_id", "name", "kind", "added_by", "last_used_at", "revoked_at"}
    assert database.execute("SELECT count(*) FROM audit_log WHERE action = 'device.revoke'").fetchone() == (1,)


def test_a_device_that_nobody_has_is_refused(run):
    assert refused(run("device", "list", "Robin")).startswith("There is no person called Robin.")
    assert refused(run("device", "revoke", NOBODY)).startswith("You have no such device.")
    wrong = run("device", "revoke", "laptop")
    assert (wrong.exit_code, "an id is needed" in wrong.stderr) == (2, True)
