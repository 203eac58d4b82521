"""``bothy-server audit``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

import click

from bothy_server import wiring
from bothy_server.commands.calls import as_json, fail, with_admin
from bothy_server.platform.audit_chain import ChainReport
from bothy_server.platform.audit_file import AuditFileError, exported, verify_file

_TOLD_EVERY = 10_000
_LONGEST_LINE = 4096
"""Bytes of a line of a copy; a row has less than a quarter of it."""


@click.group()
def audit() -> None:
    """The audit log: who decided what. It only grows, and each row proves the one before it."""


@audit.command("verify")
@click.option(
    "--file", "copy", type=click.File("rb"), help="Check a copy made by `audit export`, without the database."
)
@click.option("--head", "kept_head", metavar="HASH", help="A hash that was kept elsewhere; with --rows.")
@click.option("--rows", "kept_rows", type=click.IntRange(min=0), help="How many rows there were then.")
@as_json
def audit_verify(copy: BinaryIO | None, kept_head: str | None, kept_rows: int | None, as_json: bool) -> None:
    """Check every row against the one before it. Keep the number of rows and the hash where nobody of the server gets.

    Ends with 1 when a row was changed, removed or put in, and when the rows that were kept in mind are not there any more.
    """
    if (kept_head is None) is not (kept_rows is None):
        raise click.UsageError("--head and --rows go together")
    at = kept_rows or 0
    if copy is None:
        report = with_admin(lambda admin: admin.audit.verify(_progress, at))
    else:
        try:
            report = verify_file(iter(lambda: copy.readline(_LONGEST_LINE), b""), _progress, at)
        except AuditFileError as error:
            fail(f"{copy.name}: {error}")
    wrong = _wrong(report, kept_head, at)
    if as_json:
        found = {"rows": report.rows, "head": report.head.hex(), "broken_at": report.broken_at, "whole": wrong is None}
        click.echo(json.dumps(found))
        sys.exit(0 if wrong is None else 1)
    if wrong is not None:
        fail(wrong)
    click.echo(f"{report.rows} rows, each follows from the one before\nhead {report.head.hex()}")


@audit.command("export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="POSITION", help="Only the rows behind this one."
)
def audit_export(file: Path, after: int) -> None:
    """Copy the log into FILE, or to the output with `-`, as JSON lines. `audit verify --file` checks the copy."""

    async def export(admin: wiring.Admin) -> int | None:
        previous = await admin.audit.hash_at(after)
        if previous is None:
            return None
        lines = -2  # head and foot
        with _output(file) as output:
            async for line in exported(admin.audit.rows(after), after, previous):
                output.write(line)
                lines += 1
        return lines

    rows = with_admin(export)
    if rows is None:
        fail(f"there is no row {after}")
    click.echo(f"wrote {rows} rows", err=str(file) == "-")


@contextmanager
def _output(file: Path) -> Iterator[IO[bytes]]:
    """A file that is new, for us alone: names and times of persons are nobody else's business."""
    if str(file) == "-":
        yield sys.stdout.buffer
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        fail(f"{file}: {error.strerror}")
    with os.fdopen(descriptor, "wb") as output:
        yield output


def _wrong(report: ChainReport, kept_head: str | None, kept_rows: int) -> str | None:
    """What is wrong with the log, as lines for a person."""
    if report.broken_at is not None:
        return (
            f"row {report.broken_at} does not follow from the row before it; the {report.rows} rows before it are whole"
        )
    if kept_head is None:
        return None
    if report.kept_head is None:
        return f"there were {kept_rows} rows, and row {kept_rows} is not there: the log was cut at its end"
    if report.kept_head.hex() != kept_head.lower():
        return f"row {kept_rows} has another hash than it had: the log was written anew"
    return None


def _progress(rows: int) -> None:
    if rows % _TOLD_EVERY == 0 and sys.stderr.isatty():
        click.echo(f"\r{rows} rows", err=True, nl=False)
