"""A copy of the audit log proves itself; one that was cut, changed or made up is noticed."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from bothy_server.platform.audit_chain import AuditRow
from bothy_server.platform.audit_file import AuditFileError, exported, verify_file

BEGUN = datetime(2030, 1, 2, 3, 4, 5, 600, tzinfo=UTC)
ALEX, LAPTOP, HOST = UUID(int=1), UUID(int=2), UUID(int=3)


def chain(count):
    """Rows of every shape."""
    rows, previous = [], b""
    for number in range(1, count + 1):
        subject = (ALEX if number % 3 == 0 else None, LAPTOP if number % 2 == 0 else None)
        actor = (ALEX, LAPTOP) if number % 4 else (None, None)
        at = BEGUN + timedelta(microseconds=number)
        row = AuditRow(number, at, "host.state", "disabled", *actor, HOST, None, b"", *subject)
        row = msgspec.structs.replace(row, hash=row.expected_hash(previous))
        rows.append(row)
        previous = row.hash
    return rows


async def copy(rows, after=0, previous=b""):
    async def given():
        for row in rows:
            yield row

    return [line async for line in exported(given(), after, previous)]


def verify(lines, kept_rows=0):
    return verify_file(lines, lambda _: None, kept_rows)


async def test_a_copy_is_whole_and_has_a_line_for_each_row():
    rows = chain(12)
    lines = await copy(rows)
    report = verify(lines)
    assert (report.rows, report.head, report.broken_at) == (12, rows[-1].hash, None)
    told = [json.loads(line) for line in lines]
    assert [each["line"] for each in told] == ["head", *["row"] * 12, "foot"]
    assert [bytes.fromhex(each["hash"]) for each in told[1:-1]] == [row.hash for row in rows]
    assert told[1]["at"] == "2030-01-02T03:04:05.000601Z"
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


async def test_what_a_line_may_hold_is_all_that_a_row_holds_and_no_content():
    told = [json.loads(line) for line in (await copy(chain(12)))[1:-1]]
    ids = {"person_id", "device_id", "host_id", "subject_person_id", "subject_device_id"}
    assert set().union(*told) == {"line", "position", "at", "action", "code", "hash"} | ids


async def test_a_part_of_the_log_begins_where_it_says():
    rows = chain(12)
    report = verify(await copy(rows[5:], 5, rows[4].hash), kept_rows=5)
    assert (report.rows, report.broken_at, report.kept_head) == (12, None, rows[4].hash)
    empty = verify(await copy([], 12, rows[-1].hash))
    assert (empty.rows, empty.head, empty.broken_at) == (12, rows[-1].hash, None)
    assert verify(await copy(rows[6:], 5, rows[4].hash)).broken_at == 7
    assert verify(await copy(rows[5:], 5, rows[3].hash)).broken_at == 6


async def test_a_head_that_was_kept_is_found_in_the_copy():
    rows = chain(12)
    lines = await copy(rows)
    assert verify(lines, 7).kept_head == rows[6].hash
    assert verify(lines, 13).kept_head is None


async def test_a_file_that_was_cut_anywhere_is_noticed():
    lines = await copy(chain(6))
    whole = b"".join(lines)
    for length in range(len(whole) - 1):
        with pytest.raises(AuditFileError):
            verify(whole[:length].splitlines(keepends=True))
    assert verify(whole[:-1].splitlines(keepends=True)).rows == 6, "the last line feed says nothing"


@pytest.mark.parametrize("at", range(1, 7))
async def test_a_row_that_is_left_out_changed_or_put_in_is_found(at):
    lines = await copy(chain(6))
    if at < 6:
        assert verify([*lines[:at], *lines[at + 1 :]]).broken_at == at + 1
    assert verify([*lines[:at], lines[at].replace(b"disabled", b"active"), *lines[at + 1 :]]).broken_at == at
    assert verify([*lines[: at + 1], *lines[at:]]).broken_at == at


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda lines: [], "line 1 is not"),
        (lambda lines: lines[1:], "line 1 is not the head"),
        (lambda lines: [*lines[:3], *lines], "line 4 is a second head"),
        (lambda lines: [*lines[:-2], lines[-1]], "line 7 tells of 6 rows"),
        (lambda lines: [*lines, b"\n"], "something stands behind line 8"),
        (lambda lines: [lines[0], b"{}\n", *lines[1:]], "line 2 is not"),
        (lambda lines: [lines[0], lines[1].replace(b'"code"', b'"more":1,"code"'), *lines[2:]], "line 2 is not"),
        (lambda lines: [b"\x00\xff" * 50], "line 1 is not"),
    ],
)
async def test_what_is_no_copy_is_told_by_its_line(spoil, told):
    with pytest.raises(AuditFileError, match=told):
        verify(spoil(await copy(chain(6))))
