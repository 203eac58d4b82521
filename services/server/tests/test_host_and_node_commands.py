"""Commands that administer hosts and show nodes, against a real database."""

import json
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

from bothy_server.commands import bothy_server
from bothy_server.identity.adapters.keystore.store import add_key


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


def test_a_host_is_disabled_enabled_and_retired_by_name(run, database):
    assert run("person", "add", "Robin").exit_code == 0
    assert run("host", "add", "lab-1", "--owner", "Robin").exit_code == 0
    refused = run("host", "disable", "lab-1")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "bothy-server: The host is pending; it cannot be made disabled.\n",
    )
    database.execute("UPDATE hosts SET state = 'active'")
    assert run("host", "disable", "lab-1").stdout == "lab-1 is disabled\n"
    assert run("host", "enable", "lab-1").stdout == "lab-1 is active\n"
    retired = json.loads(run("host", "retire", "lab-1", "--yes", "--json").stdout)
    assert retired == {"host_id": retired["host_id"], "state": "retired"}
    assert run("host", "enable", "lab-1").exit_code == 1, "its name is free"
    codes = database.execute("SELECT code FROM audit_log WHERE action = 'host.state' ORDER BY position").fetchall()
    assert codes == [("disabled",), ("active",), ("retired",)]


def test_hosts_are_listed_with_what_to_do(run, database):
    assert json.loads(run("host", "list", "--json").stdout) == {"hosts": []}
    assert run("person", "add", "Robin").exit_code == 0
    for name in ("copied", "off", "on", "over", "unpaired", "waiting"):
        assert run("host", "add", name, "--owner", "Robin").exit_code == 0
    database.execute("UPDATE hosts SET last_seen_at = '2026-01-02T03:04:05Z' WHERE name <> 'unpaired'")
    database.execute(
        "UPDATE hosts SET signing_key = sha256(name::bytea), channel_key = sha256(name::bytea) WHERE name <> 'unpaired'"
    )
    database.execute("UPDATE hosts SET state = 'active' WHERE name = 'on'")
    database.execute("UPDATE hosts SET state = 'retired' WHERE name = 'over'")
    database.execute("UPDATE hosts SET state = 'disabled', disabled_reason = 'operator' WHERE name = 'off'")
    database.execute(
        "UPDATE hosts SET state = 'disabled', disabled_reason = 'duplicate_connection' WHERE name = 'copied'"
    )
    seen = "last seen 2026-01-02T03:04:05+00:00"
    assert run("host", "list").stdout.splitlines() == [
        f"copied  disabled  {seen}",
        "    two machines hold its key: stop the copy, then pair it again with `bothy-server host code copied`",
        f"off  disabled  {seen}",
        "    `bothy-server host enable off` lets it dial in again",
        f"on  active  {seen}",
        "unpaired  pending  never seen",
        "    not paired: `bothy-server host code unpaired` makes a pairing code",
        f"waiting  pending  {seen}",
        "    waits for its owner, who confirms the fingerprint that the machine printed",
    ]
    listed = json.loads(run("host", "list", "--json").stdout)["hosts"]
    assert listed[0] == {
        "host_id": listed[0]["host_id"],
        "name": "copied",
        "state": "disabled",
        "disabled_reason": "duplicate_connection",
        "last_seen_at": "2026-01-02T03:04:05+00:00",
    }
    assert listed[3]["last_seen_at"] is None
    assert run("host", "code", "copied", "--yes").exit_code == 0
    assert json.loads(run("host", "list", "--json").stdout)["hosts"][0]["state"] == "pending"


def test_what_cannot_be_undone_is_asked_about(run, database):
    assert run("person", "add", "Robin").exit_code == 0
    assert run("host", "add", "lab-1", "--owner", "Robin").exit_code == 0
    assert run("host", "code", "lab-1").exit_code == 0, "nothing is lost by it yet"
    database.execute("UPDATE hosts SET state = 'active'")
    told = {
        "code": "bothy-server: a new code makes the key of lab-1 void and ends its sessions, at once; --yes does it\n",
        "retire": "bothy-server: lab-1 ends for good, and its sessions with it; --yes does it\n",
    }
    for word, words in told.items():
        refused = run("host", word, "lab-1")
        assert (refused.exit_code, refused.stdout, refused.stderr) == (1, "", words)
    assert database.execute("SELECT state FROM hosts").fetchall() == [("active",)]
    assert run("host", "code", "lab-1", "--yes").exit_code == 0
    assert run("host", "retire", "lab-1", "--yes").stdout == "lab-1 is retired\n"


def test_a_host_is_renamed(run):
    assert run("person", "add", "Robin").exit_code == 0
    for name in ("lab-1", "lab-2"):
        assert run("host", "add", name, "--owner", "Robin").exit_code == 0
    assert run("host", "rename", "lab-1", "lab-3").stdout == "lab-1 is called lab-3\n"
    refused = run("host", "rename", "lab-3", "lab-2")
    assert (refused.exit_code, refused.stderr) == (1, "bothy-server: There is a host called lab-2 already.\n")
    assert json.loads(run("host", "rename", "lab-3", "lab-1", "--json").stdout)["name"] == "lab-1"


def test_owners_of_a_host(run, database):
    for name in ("Robin", "Sam"):
        assert run("person", "add", name).exit_code == 0
    assert run("host", "add", "lab-1", "--owner", "Robin").exit_code == 0
    refused = run("host", "owners", "lab-1", "--remove", "Robin")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("bothy-server: Nobody who can decide about the host would be left.")
    assert [line.split()[0] for line in run("host", "owners", "lab-1", "--add", "Sam").stdout.splitlines()] == [
        "Robin",
        "Sam",
    ]
    database.execute("UPDATE persons SET disabled_at = now() WHERE name = 'Robin'")
    listed = json.loads(run("host", "owners", "lab-1", "--json").stdout)["owners"]
    assert [(each["person_name"], each["disabled"]) for each in listed] == [("Robin", True), ("Sam", False)]
    assert run("host", "owners", "lab-1", "--remove", "Robin").stdout.startswith("Sam  since ")
    unknown = run("host", "owners", "lab-1", "--add", "Robin")
    assert (unknown.exit_code, "There is no such person" in unknown.stderr) == (1, True)


def test_grants_on_a_host(run):
    for name in ("Robin", "Sam"):
        assert run("person", "add", name).exit_code == 0
    assert run("host", "add", "lab-1", "--owner", "Robin").exit_code == 0
    assert run("host", "grant", "lab-1", "Sam", "--user", "alex").stdout == "lab-1: Sam as alex\n"
    ends = json.loads(
        run("host", "grant", "lab-1", "Sam", "--user", "alex", "--until", "2099-12-31T18:00", "--json").stdout
    )
    assert datetime.fromisoformat(ends["expires_at"]) == datetime(2099, 12, 31, 18).astimezone()
    listed = run("host", "grants", "lab-1")
    assert listed.stdout == f"Sam as alex until {ends['expires_at']}\n"
    assert json.loads(run("host", "grants", "lab-1", "--json").stdout) == {"grants": [ends]}
    passed = run("host", "grant", "lab-1", "Sam", "--user", "alex", "--until", "2020-01-01 00:00")
    assert (passed.exit_code, "The end of the grant has passed" in passed.stderr) == (1, True)
    assert run("host", "grant", "lab-1", "Sam", "--user", "robin").exit_code == 0
    assert run("host", "revoke-grant", "lab-1", "Sam", "--user", "alex").stdout == "Sam as robin\n"
    assert json.loads(run("host", "revoke-grant", "lab-1", "Sam", "--json").stdout) == {"grants": []}
    gone = run("host", "revoke-grant", "lab-1", "Sam")
    assert (gone.exit_code, "There is no such grant" in gone.stderr) == (1, True)


def test_nodes_are_listed(run, database):
    assert json.loads(run("node", "list", "--json").stdout) == {"nodes": []}
    node_id = uuid4()
    database.execute(
        "INSERT INTO cluster_nodes (node_id, origin, role, version) VALUES (%s, 'http://127.0.0.1:8080', 'api', '1.0')",
        [node_id],
    )
    database.execute(
        "INSERT INTO node_status (node_id, sides, pairs, pending, unpaired_client, unpaired_host, forwarded_bytes, key_ids)"
        " VALUES (%s, 4, 2, 0, 1, 0, 99, '{k1}')",
        [node_id],
    )
    (listed,) = json.loads(run("node", "list", "--json").stdout)["nodes"]
    assert (listed["node_id"], listed["role"], listed["state"]) == (str(node_id), "api", "active")
    assert (listed["sides"], listed["unpaired_client"], listed["key_ids"]) == (4, 1, ["k1"])
    assert "4 sides, 2 pairs  http://127.0.0.1:8080" in run("node", "list").stdout


def test_a_node_is_asked_to_drain_by_its_id(run, database):
    node_id, gone = uuid4(), uuid4()
    for each, state in ((node_id, "active"), (gone, "leaving")):
        database.execute(
            "INSERT INTO cluster_nodes (node_id, origin, role, version, state)"
            " VALUES (%s, 'http://127.0.0.1:8080', 'api', '1.0', %s)",
            [each, state],
        )
        database.execute(
            "INSERT INTO node_status (node_id, sides, pairs, pending, unpaired_client, unpaired_host, forwarded_bytes,"
            " key_ids) VALUES (%s, 4, 2, 0, 1, 0, 99, '{k1}')",
            [each],
        )
    asked = json.loads(run("node", "drain", str(node_id), "--json").stdout)
    assert (asked["node_id"], asked["state"]) == (str(node_id), "draining")
    assert run("node", "drain", str(node_id)).stdout.startswith("asked; it was heard ")
    (listed,) = [line for line in run("node", "list").stdout.splitlines() if str(node_id) in line]
    assert "draining" in listed
    assert "0 hosts, 4 sides, 2 pairs" in listed
    refused = run("node", "drain", str(gone))
    assert (refused.exit_code, refused.stderr) == (1, "bothy-server: The node has left.\n")


@pytest.mark.parametrize("words", [[], ["--self", str(uuid4())]])
def test_a_drain_is_of_one_node(run, words):
    wrong = run("node", "drain", *words)
    assert wrong.exit_code == 2
    assert "name one NODE, or --self" in wrong.stderr
