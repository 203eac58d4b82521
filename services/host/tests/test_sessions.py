from __future__ import annotations

import uuid

import pytest

from bothy_host import processes
from bothy_wire import frames


async def test_more_sessions_than_allowed_are_refused(start, server, base_settings):
    machine = await start(base_settings + "max_sessions = 1\n")
    device, side = await machine.session()
    await device.open(side)
    second = uuid.uuid4()
    await server.order(second)
    assert (await server.hears(frames.HostSessionEnded, session_id=second)).reason == "refused"


async def test_an_open_for_what_ended_is_answered_with_its_end(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await device.type(b"exit\n")
    await server.hears(frames.HostSessionEnded, session_id=device.session_id)
    sides = len(server.sides)
    await server.order(device.session_id)
    count = len(server.all_heard(frames.HostSessionEnded))
    await server.changes.until(lambda: len(server.all_heard(frames.HostSessionEnded)) > count)
    assert len(server.sides) == sides


async def test_a_session_that_the_server_recorded_as_closed_ends(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await server.say(frames.HostSessionRecorded(session_id=device.session_id, state="closed"))
    assert await side.until_closed() == 1000
    assert not machine.sessions.unrecorded()
    assert not machine.sessions.report()


async def test_an_open_that_is_being_dialled_is_ignored(start, server):
    machine = await start()
    device, _ = await machine.session()
    await server.order(device.session_id)
    other, _ = await machine.session()
    assert len(server.sides) == 2
    assert {each.session_id for each in machine.sessions.report()} == {device.session_id, other.session_id}
    assert {each.phase for each in machine.sessions.report()} == {"dialling"}


async def test_words_about_unknown_sessions_change_nothing(start, server):
    machine = await start()
    unknown = uuid.uuid4()
    await server.say(frames.HostSessionClose(session_id=unknown, reason="revoked"))
    await server.say(frames.HostSessionRecorded(session_id=unknown, state="opening"))
    await server.say(frames.HostSessionRecorded(session_id=unknown, state="closed"))
    device, side = await machine.session()
    await device.open(side)


async def test_closed_from_outside_tells_nobody_and_closes_the_connection(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await server.hears(frames.HostSessionStarted, session_id=device.session_id)
    await server.say(frames.HostSessionClose(session_id=device.session_id, reason="revoked"))
    assert await side.until_closed() == 1000
    assert not machine.sessions.unrecorded()
    assert not server.all_heard(frames.HostSessionEnded)


async def test_4100_on_the_data_connection_ends_the_program(start, server):
    machine = await start()
    device, side = await machine.session()
    await device.open(side)
    await side.connection.close(4100)
    await server.changes.until(lambda: True)
    for task in list(machine.sessions._tasks):
        await task
    assert not machine.sessions.report()


@pytest.mark.parametrize("running", [False, True])
async def test_a_fault_of_a_session_ends_its_program_and_is_reported(
    start, server, monkeypatch, caplog, eventually, running
):
    machine = await start()
    if running:
        device, side = await machine.session()
        await device.open(side)
        await server.hears(frames.HostSessionStarted, session_id=device.session_id)
        (session,), (task,) = machine.sessions._running.values(), machine.sessions._tasks
        shell, session_id = session._pty.pid, device.session_id
        task.cancel()
    else:
        monkeypatch.setattr("bothy_host.session.account_for", _broken)
        session_id = uuid.uuid4()
        await server.order(session_id)
    ended = await server.hears(frames.HostSessionEnded, session_id=session_id)
    assert ended.reason == "spawn_failed"
    await eventually(lambda: not machine.sessions._tasks)
    assert not machine.sessions._running
    if running:
        assert not processes.members(shell)
        assert await side.until_closed() == 1000
    else:
        assert f"session {session_id} failed" in caplog.text


async def test_stopping_ends_all_sessions_though_one_fails(start, monkeypatch):
    machine = await start()
    sessions = [await machine.session() for _ in range(2)]
    for device, side in sessions:
        await device.open(side)
    first, second = machine.sessions._running.values()

    async def broken(grace: float) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(first._pty, "end", broken)
    await machine.sessions.stop()
    assert [await side.until_closed() for _, side in sessions] == [1000, 1000]
    assert not processes.members(second._pty.pid)
    monkeypatch.undo()
    await first._pty.end(0.2)


async def test_ends_that_nobody_records_are_bounded(start, server, monkeypatch):
    monkeypatch.setattr("bothy_host.sessions._MOST_ENDS", 3)
    machine = await start()
    unknown = [uuid.uuid4() for _ in range(5)]
    for each in unknown:
        await server.order(each, profile="nothing")
    await server.hears(frames.HostSessionEnded, session_id=unknown[-1])
    assert [each.session_id for each in machine.sessions.unrecorded()] == unknown[2:]


def _broken(*_: object, **__: object) -> None:
    raise RuntimeError("a defect")
