"""``bothy-server audit``: what it proves, and how it says that something is wrong."""

import json
import stat
from datetime import UTC, datetime

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

    def call(*words, database=True, **more):
        used = environment if database else dict.fromkeys(environment)
        return CliRunner().invoke(bothy_server, ["audit", *map(str, words)], env=used, **more)

    return call


@pytest.fixture
def write(database_url):
    """So many rows more."""

    def rows(count):
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "SELECT bothy_append(jsonb_agg(jsonb_build_object('action', 'host.pair', 'code', 'paired')), '[]', '[]')"
                " FROM generate_series(1, %s)",
                [count],
            )

    return rows


@pytest.fixture
def tamper(database_url):
    def change(statement):
        with psycopg.connect(database_url) as connection:
            connection.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_only_grows")
            connection.execute(statement)

    return change


def kept(run):
    """What an operator keeps elsewhere, as words of the next check."""
    report = json.loads(run("verify", "--json").stdout)
    return ["--rows", report["rows"], "--head", report["head"]]


def test_verify_tells_rows_and_head(run, write):
    write(3)
    shown = run("verify")
    assert (shown.exit_code, shown.stderr) == (0, "")
    report = json.loads(run("verify", "--json").stdout)
    assert report == {"rows": 3, "head": report["head"], "broken_at": None, "whole": True}
    assert shown.stdout == f"3 rows, each follows from the one before\nhead {report['head']}\n"
    assert len(report["head"]) == 64


def test_verify_tells_the_first_broken_row_and_fails(run, write, tamper):
    write(5)
    tamper("UPDATE audit_log SET code = 'other' WHERE position = 3")
    shown = run("verify")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr == (
        "bothy-server: row 3 does not follow from the row before it; the 2 rows before it are whole\n"
    )
    told = run("verify", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout) == {
        "rows": 2,
        "head": json.loads(told.stdout)["head"],
        "broken_at": 3,
        "whole": False,
    }


def test_verify_finds_a_log_that_was_cut_by_what_was_kept(run, write, tamper):
    write(5)
    words = kept(run)
    write(2)
    assert run("verify", *words).exit_code == 0
    tamper("DELETE FROM audit_log WHERE position > 4")
    assert run("verify").exit_code == 0, "a cut end alone looks whole"
    shown = run("verify", *words)
    assert shown.exit_code == 1
    assert "row 5 is not there: the log was cut at its end" in shown.stderr
    write(2)
    shown = run("verify", *words, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["whole"]) == (1, False)
    assert "another hash than it had" in run("verify", *words).stderr


@pytest.mark.parametrize("words", [["--head", "00"], ["--rows", "1"]])
def test_verify_needs_both_of_what_was_kept(run, words):
    assert run("verify", *words).exit_code == 2


def test_export_makes_a_file_for_us_alone_that_needs_no_database_to_be_checked(run, write, tmp_path):
    write(5)
    words, file = kept(run), tmp_path / "audit.jsonl"
    assert run("export", file).stdout == "wrote 5 rows\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = run("verify", "--file", file, *words, database=False)
    assert (shown.exit_code, shown.stdout) == (0, f"5 rows, each follows from the one before\nhead {words[3]}\n")
    again = run("export", file)
    assert (again.exit_code, again.stderr) == (1, f"bothy-server: {file}: File exists\n")


def test_export_of_what_came_since_continues_the_copy_before(run, write, tmp_path):
    write(5)
    words = kept(run)
    write(2)
    assert run("export", tmp_path / "more", "--after", "5").stdout == "wrote 2 rows\n"
    shown = run("verify", "--file", tmp_path / "more", *words, "--json", database=False)
    assert (shown.exit_code, json.loads(shown.stdout)["rows"]) == (0, 7)
    beyond = run("export", tmp_path / "none", "--after", "8")
    assert (beyond.exit_code, beyond.stderr) == (1, "bothy-server: there is no row 8\n")
    assert not (tmp_path / "none").exists()


def test_export_to_the_output_is_the_file(run, write, tmp_path):
    write(3)
    shown = run("export", "-")
    run("export", tmp_path / "file")
    assert shown.stdout_bytes == (tmp_path / "file").read_bytes()
    assert shown.stderr == "wrote 3 rows\n"
    piped = run("verify", "--file", "-", database=False, input=shown.stdout_bytes)
    assert (piped.exit_code, piped.stdout[:6]) == (0, "3 rows")


def test_verify_of_a_file_that_was_cut_says_where(run, write, tmp_path):
    write(3)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run("export", whole)
    cut.write_bytes(b"".join(whole.read_bytes().splitlines(keepends=True)[:-2]))
    shown = run("verify", "--file", cut, database=False)
    assert shown.exit_code == 1
    assert shown.stderr == f"bothy-server: {cut}: the file was cut: it ends behind position 2 without a foot\n"


def test_verify_of_what_is_no_copy_reads_little_of_it(run, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"x" * 10_000_000)
    shown = run("verify", "--file", other, database=False)
    assert shown.exit_code == 1
    assert "line 1 is not of a copy of an audit log" in shown.stderr


def test_audit_needs_its_database(run, tmp_path):
    shown = run("verify", database=False)
    assert shown.exit_code == 1
    assert "database.url" in shown.stderr
