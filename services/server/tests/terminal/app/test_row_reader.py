"""Reads of session rows: one statement for a burst, begun after the question."""

import asyncio
from uuid import UUID

import pytest

from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.terminal.app.row_reader import RowReader

NOBODY = UUID(int=1)


@pytest.fixture
def reader(rows, tasks):
    return RowReader(rows.uow, tasks)


@pytest.fixture
async def sessions(rows, device, host):
    return [await rows.session(device, host) for _ in range(3)]


async def test_a_burst_is_one_read(reader, rows, sessions):
    asked = [*(session.id for session in sessions), sessions[0].id, NOBODY]
    before = rows.units
    found = await asyncio.gather(*(reader.read(session_id) for session_id in asked))
    assert found == [*sessions, sessions[0], None]
    assert rows.units == before + 1


async def test_a_later_question_is_a_read_of_its_own(reader, rows, sessions, turns):
    """A read that began before would not show what was written since."""
    first = asyncio.create_task(reader.read(sessions[0].id))
    before = rows.units
    await turns(lambda: rows.units > before)
    second = asyncio.create_task(reader.read(sessions[0].id))
    assert await first == await second == sessions[0]
    assert rows.units == before + 2


async def test_a_failure_reaches_every_reader(reader, rows, sessions):
    rows.away = True
    results = await asyncio.gather(*(reader.read(each.id) for each in sessions), return_exceptions=True)
    assert [type(each) for each in results] == [StorageUnavailable] * 3
    rows.away = False
    assert await reader.read(sessions[0].id) == sessions[0]


@pytest.mark.parametrize("away", [False, True])
async def test_a_reader_that_gives_up_takes_nobody_along(reader, rows, sessions, away):
    rows.away = away
    hasty = asyncio.create_task(reader.read(sessions[0].id))
    patient = asyncio.create_task(reader.read(sessions[0].id))
    await asyncio.sleep(0)
    hasty.cancel()
    await asyncio.wait([hasty, patient])
    assert hasty.cancelled()
    if away:
        assert isinstance(patient.exception(), StorageUnavailable)
    else:
        assert patient.result() == sessions[0]
