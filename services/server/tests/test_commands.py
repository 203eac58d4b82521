"""``bothy-server`` as an operator meets it: what can be mended is one line that says how, and no traceback."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from bothy_server.cli import main
from bothy_server.identity.adapters.keystore.store import add_key
from bothy_server.migrations import run


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The only line of a refusal, without the program's name."""
        assert self.out == ""
        (line,) = self.err.splitlines()
        name, _, text = line.partition(": ")
        assert name == "bothy-server"
        return text


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Nothing of the person who runs the tests; each test sets what it needs."""
    for name in os.environ:
        if name.upper().startswith("BOTHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("BOTHY_SECRETS__SIGNING_KEY_DIR", str(tmp_path / "keys"))
    return monkeypatch


@pytest.fixture
def keys_dir(tmp_path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def bothy_server(environment, capsys):
    """Run a command in this process."""

    def call(*words: str) -> Outcome:
        environment.setattr(sys, "argv", ["bothy-server", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        status = ended.value.code or 0
        said = capsys.readouterr()
        if isinstance(status, str):
            return Outcome(1, said.out, said.err + status + "\n")
        return Outcome(status, said.out, said.err)

    return call


@pytest.fixture
def process():
    """Run a command in a process of its own, for what changes the process: logs, signals, the event loop."""

    def call(*words: str) -> Outcome:
        program = [sys.executable, "-c", "from bothy_server.cli import main; main()", *words]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def ready(environment, database_url, bothy_server):
    """A migrated database and a signing key."""
    environment.setenv("BOTHY_DATABASE__URL", database_url)
    assert bothy_server("keys", "init").status == 0


# ---- how it is called ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sevre"], "No such command 'sevre'."),
        (["person", "add"], "Missing argument 'NAME'. (bothy-server person add --help explains)"),
        (["host", "add", "lab-1"], "Missing option '--owner'. (bothy-server host add --help explains)"),
        (["serve", "--role", "boss"], "Invalid value for '--role': 'boss' is not one of 'api', 'worker', 'all'."),
    ],
)
def test_a_wrong_call_is_one_line(bothy_server, words, line):
    wrong = bothy_server(*words)
    assert wrong.status == 2
    assert wrong.line.startswith(line)


def test_no_command_shows_the_commands(bothy_server):
    shown = bothy_server()
    assert shown.status == 2
    assert {"serve", "migrate", "settings", "keys", "person", "host"} <= set(shown.err.split())


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_and_version_need_no_settings(environment, bothy_server, word):
    environment.setenv("BOTHY_CLUSTERMODE", "1")
    asked = bothy_server(word)
    assert (asked.status, asked.err) == (0, "")
    assert "bothy-server" in asked.out


def test_a_server_without_its_extra_says_what_to_install(environment, bothy_server):
    for module in ("bothy_server.commands", "bothy_server.commands.serve"):
        environment.delitem(sys.modules, module, raising=False)
    environment.setitem(sys.modules, "uvloop", None)
    assert bothy_server("--version").line == (
        "uvloop is not installed; install the server with: pip install 'bothy-relay[server]'"
    )


# ---- settings -----------------------------------------------------------------------------------------------------


def test_every_wrong_setting_has_a_line(environment, bothy_server):
    environment.setenv("BOTHY_TERMINAL__OPEN_TIMEOUT", "soon")
    wrong = bothy_server("migrate")
    assert (wrong.status, wrong.out) == (1, "")
    assert wrong.err.splitlines() == [
        "bothy-server: database.url: must be set, for example by BOTHY_DATABASE__URL",
        'bothy-server: terminal.open_timeout: a duration is written like "20 s", "250 ms", "10 min", "12 h", "7 d"',
    ]


def test_an_unknown_setting_is_named_with_the_nearest(environment, bothy_server):
    environment.setenv("BOTHY_CLUSTERMODE", "multi")
    assert bothy_server("settings").line == (
        "BOTHY_CLUSTERMODE: there is no such setting; the nearest is BOTHY_CLUSTER__MODE"
    )


def test_settings_are_shown_without_secrets(environment, bothy_server):
    environment.setenv("BOTHY_DATABASE__URL", "postgresql://bothy:hush@db/bothy")
    shown, as_json = bothy_server("settings"), bothy_server("settings", "--json")
    assert "terminal.open_timeout = 20.0" in shown.out.splitlines()
    assert json.loads(as_json.out)["cluster"]["mode"] == "single"
    assert "hush" not in shown.out + as_json.out


def test_the_reference_needs_no_settings(environment, bothy_server):
    environment.delenv("BOTHY_SECRETS__SIGNING_KEY_DIR")
    assert bothy_server("settings", "--reference").out.startswith("# Configuration of the server")


# ---- the database -------------------------------------------------------------------------------------------------


@pytest.fixture
def empty_url(postgres):
    name = postgres.create_database()
    yield postgres.url(name)
    postgres.drop_database(name)


def test_migrate_brings_the_database_up_once(environment, bothy_server, empty_url):
    environment.setenv("BOTHY_DATABASE__URL", empty_url)
    assert bothy_server("migrate").out.startswith("applied 0001, ")
    assert bothy_server("migrate").out == "nothing to do: the database is up to date\n"


CALLS = pytest.mark.parametrize("words", [["migrate"], ["person", "add", "Robin"]], ids=["migrate", "person"])


@CALLS
def test_a_database_that_is_away_is_one_line(environment, bothy_server, words):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        port = closed.getsockname()[1]
        environment.setenv("BOTHY_DATABASE__URL", f"postgresql://bothy:hush@127.0.0.1:{port}/bothy")
        away = bothy_server(*words)
    assert away.status == 1
    assert re.fullmatch(
        rf'the database cannot be used \(.*"127\.0\.0\.1", port {port} failed: Connection refused\);'
        " check database.url and that PostgreSQL runs",
        away.line,
    )


def test_a_database_that_does_not_exist_is_one_line(environment, bothy_server, postgres):
    environment.setenv("BOTHY_DATABASE__URL", postgres.url("bothy_nowhere"))
    assert 'database "bothy_nowhere" does not exist' in bothy_server("migrate").line
    assert bothy_server("person", "add", "Robin").line.endswith("create it, then run `bothy-server migrate`")


def test_a_role_that_may_not_make_tables_is_one_line(environment, bothy_server, empty_url):
    with psycopg.connect(empty_url) as connection:
        connection.execute("CREATE ROLE bothy_guest LOGIN")
    try:
        environment.setenv("BOTHY_DATABASE__URL", empty_url.replace("://bothy@", "://bothy_guest@"))
        assert bothy_server("migrate").line == "the database refused: permission denied for schema public"
    finally:
        with psycopg.connect(empty_url) as connection:
            connection.execute("DROP ROLE bothy_guest")


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("hush-hush", "an address like postgresql://USER@HOST/NAME is needed"),
        ("host=db dbname=bothy", "an address like postgresql://USER@HOST/NAME is needed"),
        (
            "mysql://bothy:hush@db/bothy",
            "mysql is not PostgreSQL: an address like postgresql://USER@HOST/NAME is needed",
        ),
        ("postgresql://bothy:hush%zz@db/bothy", "this is no address that PostgreSQL's client understands"),
    ],
)
@CALLS
def test_an_address_of_something_else_is_refused_and_not_quoted(environment, bothy_server, words, url, what):
    environment.setenv("BOTHY_DATABASE__URL", url)
    refused = bothy_server(*words).line
    assert refused == f"database.url: {what}"
    assert "hush" not in refused


def test_a_database_that_is_behind_or_ahead_is_one_line(environment, bothy_server, empty_url):
    environment.setenv("BOTHY_DATABASE__URL", empty_url)
    assert re.fullmatch(
        r"the database lacks migrations 0001, .*: run `bothy-server migrate`", bothy_server("person", "add", "Sam").line
    )
    run.upgrade(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for words in (["person", "add", "Sam"], ["migrate"]):
        assert bothy_server(*words).line.endswith("start a newer release")


# ---- keys ---------------------------------------------------------------------------------------------------------


UNTOLD = "the nodes could not be told; each reads its folder within secrets.reload_interval"


def listed(bothy_server):
    return json.loads(bothy_server("keys", "list", "--json").out)["keys"]


def until(found):
    """What ``found`` gives as soon as it gives anything."""
    deadline = time.monotonic() + 20
    while not (there := found()):
        assert time.monotonic() < deadline
    return there


def test_keys_need_no_database(bothy_server, keys_dir):
    made = bothy_server("keys", "init")
    (file,) = keys_dir.glob("*.json")
    assert made.out == f"made signing key {file.stem} in {keys_dir}\n"
    assert bothy_server("keys", "list").out.startswith(f"{file.stem}  signs since ")
    assert bothy_server("keys", "rotate").status == 0
    shown = listed(bothy_server)
    assert shown[0]["kid"] == file.stem
    assert {name for each in shown for name in each} == {"kid", "state", "created_at", "signs_from", "retired_at"}
    assert len(shown) == 2


def test_keys_are_made_once(bothy_server, keys_dir):
    bothy_server("keys", "init")
    assert bothy_server("keys", "init").line == (
        f"{keys_dir} holds signing keys already; `bothy-server keys list` shows them"
    )


def test_the_next_key_waits_for_every_reader_and_is_made_once(environment, bothy_server):
    environment.setenv("BOTHY_SECRETS__KEY_PUBLISH_LEAD", "1 h")
    environment.setenv("BOTHY_SECRETS__RELOAD_INTERVAL", "60 s")
    bothy_server("keys", "init")
    (old,) = listed(bothy_server)
    made = json.loads(bothy_server("keys", "rotate", "--json").out)["made"]
    starts, made_at = (datetime.fromisoformat(made[name]) for name in ("signs_from", "created_at"))
    assert starts - made_at == timedelta(seconds=3660)
    shown = starts.isoformat(timespec="seconds")
    assert bothy_server("keys", "list").out.splitlines()[1] == f"{made['kid']}  next: signs from {shown}"
    assert bothy_server("keys", "rotate").line == f"{made['kid']} is there and signs from {shown}; nothing was made"
    assert [each["state"] for each in listed(bothy_server)] == ["signs", "next"]

    at_once = bothy_server("keys", "rotate", "--now")
    assert f"once it signs, run `bothy-server keys retire --now {old['kid']}`" in at_once.out
    assert UNTOLD in at_once.out
    assert [each["state"] for each in listed(bothy_server)] == ["verifies", "signs", "next"]


def test_a_clock_that_is_behind_makes_no_key(bothy_server, keys_dir):
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    newer = add_key(keys_dir, tomorrow, tomorrow)
    assert bothy_server("keys", "rotate", "--now").line.startswith(f"{newer.kid} was made at {tomorrow:%Y-%m-%dT}")
    assert len(listed(bothy_server)) == 1


def test_a_key_whose_name_looks_like_an_option_is_a_key_all_the_same(environment, bothy_server):
    bothy_server("keys", "init")
    assert "No such option" not in bothy_server("keys", "retire", "-0WvLq").line


def test_a_key_is_retired_when_its_last_token_has_died(environment, bothy_server):
    environment.setenv("BOTHY_SECRETS__KEY_PUBLISH_LEAD", "20 ms")
    environment.setenv("BOTHY_SECRETS__RELOAD_INTERVAL", "10 ms")
    environment.setenv("BOTHY_IDENTITY__ACCESS_TOKEN_TTL", "2 h")
    bothy_server("keys", "init")
    (old,) = listed(bothy_server)
    assert bothy_server("keys", "retire", old["kid"]).line.startswith("no other key may sign")
    bothy_server("keys", "rotate")
    (new,) = until(lambda: [each for each in listed(bothy_server)[1:] if each["state"] == "signs"])
    assert bothy_server("keys", "list").out.splitlines()[0] == (
        f"{old['kid']}  verifies until it is retired: `bothy-server keys retire`"
    )
    assert bothy_server("keys", "retire", new["kid"]).line.startswith("it is the key that signs")

    begun = datetime.now(UTC)
    retired = bothy_server("keys", "retire", old["kid"])
    assert retired.out.startswith(f"{old['kid']} signs no more; verifies until ")
    until_then = datetime.fromisoformat(listed(bothy_server)[0]["retired_at"]) - begun
    assert timedelta(hours=2) <= until_then < timedelta(hours=2, minutes=1)
    assert [each["state"] for each in listed(bothy_server)] == ["verifies", "signs"]
    assert "is retired already" in bothy_server("keys", "retire", old["kid"]).line
    at_once = json.loads(bothy_server("keys", "retire", "--now", old["kid"], "--json").out)
    assert (at_once["retired"]["state"], at_once["nodes_told"]) == ("retired", False)
    assert bothy_server("keys", "list").out.startswith(f"{old['kid']}  retired since ")


@pytest.mark.usefixtures("ready")
def test_nodes_are_told_of_new_keys_and_keep_one_that_they_sign_with(environment, bothy_server, database_url):
    environment.setenv("BOTHY_SECRETS__KEY_PUBLISH_LEAD", "20 ms")
    environment.setenv("BOTHY_SECRETS__RELOAD_INTERVAL", "10 ms")
    (old,) = listed(bothy_server)
    environment.setenv("BOTHY_DATABASE__URL", "postgresql://bothy@127.0.0.1:1/bothy")
    assert UNTOLD in bothy_server("keys", "rotate").out
    environment.setenv("BOTHY_DATABASE__URL", database_url)
    until(lambda: [each for each in listed(bothy_server)[1:] if each["state"] == "signs"])
    node_id = uuid4()
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO cluster_nodes (node_id, role, version, state) VALUES (%s, 'api', '1', 'active')", [node_id]
        )
        connection.execute(
            "INSERT INTO node_status (node_id, sides, pairs, pending, unpaired_client, unpaired_host, forwarded_bytes,"
            " key_ids, signs_with) VALUES (%s, 0, 0, 0, 0, 0, 0, %s, %s)",
            [node_id, [old["kid"]], old["kid"]],
        )
    assert bothy_server("keys", "retire", old["kid"]).line.startswith(f"node {node_id} signs with it; ")
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE cluster_nodes SET state = 'leaving'")
    assert json.loads(bothy_server("keys", "retire", old["kid"], "--json").out)["nodes_told"]
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT type FROM event_log").fetchall() == [("keys.changed",)]


@pytest.mark.parametrize("words", [["keys", "list"], ["keys", "rotate"], ["keys", "retire", "x"]])
def test_missing_keys_and_open_folders_are_one_line(bothy_server, keys_dir, words):
    assert bothy_server(*words).line == f"{keys_dir}: No such file or directory; run `bothy-server keys init`"
    keys_dir.mkdir(mode=0o700)
    assert bothy_server(*words).line == f"{keys_dir} holds no signing key; run `bothy-server keys init`"
    keys_dir.chmod(0o750)
    assert bothy_server(*words).line == f"{keys_dir} is open to other accounts; run `chmod 700` on it"


def test_keys_want_their_folder_only(environment, bothy_server):
    environment.delenv("BOTHY_SECRETS__SIGNING_KEY_DIR")
    assert bothy_server("keys", "init").line == (
        "secrets.signing_key_dir: must be set, for example by BOTHY_SECRETS__SIGNING_KEY_DIR"
    )
    environment.setenv("BOTHY_SECRETS__SIGNING_KEYS", "x")
    assert "there is no such setting" in bothy_server("keys", "init").line


def test_keys_go_to_another_machine(environment, bothy_server, tmp_path):
    bothy_server("keys", "init")
    bothy_server("keys", "rotate")
    shown = bothy_server("keys", "list", "--json").out
    copy = tmp_path / "copy"
    assert bothy_server("keys", "export", str(copy), "--json").out == shown
    assert bothy_server("keys", "export", str(copy)).line == f"{copy} exists; name another file or move it away"
    assert bothy_server("keys", "export", "-").out == copy.read_text()

    environment.setenv("BOTHY_SECRETS__SIGNING_KEY_DIR", str(tmp_path / "other"))
    assert bothy_server("keys", "import", str(copy)).out == f"stored 2 signing keys in {tmp_path / 'other'}\n{UNTOLD}\n"
    assert bothy_server("keys", "list", "--json").out == shown
    assert bothy_server("keys", "import", str(copy), "--json").out == '{"stored": [], "nodes_told": false}\n'
    copy.chmod(0o640)
    assert f"others may read {copy}: " in bothy_server("keys", "import", str(copy)).err
    copy.write_bytes(b"\xff")
    assert bothy_server("keys", "import", str(copy)).line == f"{copy} is no text"


def test_keys_are_not_shown_on_a_terminal(environment, bothy_server, monkeypatch):
    bothy_server("keys", "init")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    refused = bothy_server("keys", "export", "-")
    assert refused.line.startswith("the output is a terminal")
    assert refused.out == ""


# ---- persons and hosts --------------------------------------------------------------------------------------------


CODE = r"[0-9A-Z]{5}(-[0-9A-Z]{5}){3,}|[0-9A-Z]{5}(-[0-9A-Z]{4,5})+"


@pytest.mark.usefixtures("ready")
def test_a_person_and_a_host_are_added_once(bothy_server):
    assert re.search(CODE, bothy_server("person", "add", "Robin").out)
    assert bothy_server("person", "add", "Robin").line == "There is a person called Robin already."
    assert re.search(CODE, bothy_server("host", "add", "lab-1", "--owner", "Robin").out)
    assert bothy_server("host", "add", "lab-1", "--owner", "Robin").line == "There is a host called lab-1 already."


@pytest.mark.usefixtures("ready")
def test_programs_get_one_object(bothy_server):
    person = json.loads(bothy_server("person", "add", "Robin", "--operator", "--json").out)
    again = json.loads(bothy_server("person", "invite", "Robin", "--json").out)
    assert person.keys() == again.keys() == {"person_id", "invite"}
    assert person["person_id"] == again["person_id"]
    assert person["invite"] != again["invite"]
    host = json.loads(bothy_server("host", "add", "lab-1", "--owner", "Robin", "--json").out)
    code = json.loads(bothy_server("host", "code", "lab-1", "--json").out)
    assert host.keys() == code.keys() == {"host_id", "code"}
    assert host["host_id"] == code["host_id"]


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["person", "invite", "Sam"], "There is no person called Sam."),
        (
            ["host", "add", "lab-1", "--owner", "Sam"],
            "There is no such person. Give the exact name, or the id.",
        ),
        (["host", "code", "lab-1"], "There is no such host"),
        (["host", "disable", "lab-1"], "There is no such host"),
        (["host", "enable", "lab-1"], "There is no such host"),
        (["host", "retire", "lab-1"], "There is no such host"),
    ],
)
def test_who_is_not_there_is_named(bothy_server, words, line):
    unknown = bothy_server(*words)
    assert unknown.status == 1
    assert unknown.line.startswith(line)


# ---- serving ------------------------------------------------------------------------------------------------------


@pytest.fixture
def serving(environment, database_url, bothy_server):
    """What a node needs, on free ports."""
    environment.setenv("BOTHY_DATABASE__URL", database_url)
    environment.setenv("BOTHY_SERVER__PUBLIC_ORIGINS", "https://relay.example.com")
    environment.setenv("BOTHY_SERVER__LISTEN", "127.0.0.1:0")
    environment.setenv("BOTHY_SERVER__INTERNAL_LISTEN", "127.0.0.1:0")
    return environment


def test_a_node_without_an_address_for_clients_does_not_start(serving, process):
    serving.delenv("BOTHY_SERVER__PUBLIC_ORIGINS")
    refused = process("serve")
    assert refused.status == 1
    assert refused.line.startswith("server.public_origins is empty: set it to the address that clients dial")


def test_a_node_without_keys_does_not_start(serving, process, keys_dir):
    assert (
        process("serve", "--role", "api").line == f"{keys_dir}: No such file or directory; run `bothy-server keys init`"
    )


@pytest.mark.parametrize("role", ["api", "worker", "all"])
@pytest.mark.parametrize("mode", ["single", "multi"])
def test_a_taken_port_is_one_line(serving, process, bothy_server, role, mode):
    serving.setenv("BOTHY_CLUSTER__MODE", mode)
    bothy_server("keys", "init")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        serving.setenv("BOTHY_SERVER__INTERNAL_LISTEN" if role == "worker" else "BOTHY_SERVER__LISTEN", address)
        refused = process("serve", "--role", role)
    assert (refused.status, refused.line) == (1, f"{address} cannot be bound: Address already in use")


def test_a_node_stops_when_it_is_told(serving, bothy_server):
    bothy_server("keys", "init")
    program = [sys.executable, "-c", "from bothy_server.cli import main; main()", "serve"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as node:
        lines = iter(node.stderr)
        assert json.loads(next(line for line in lines if '"event": "ready"' in line))["role"] == "all"
        node.terminate()
        assert any('"event": "leaving"' in line for line in lines)
        assert node.wait(30) == 0
