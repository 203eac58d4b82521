from __future__ import annotations

import asyncio
import uuid

import pytest

from bothy_host.outbox import Outbox
from bothy_wire.frames import HostHeartbeat, HostReport, HostSessionEnded, HostSessionStarted, encode

ONE, TWO = uuid.uuid4(), uuid.uuid4()


class Socket:
    """Takes ``room`` frames, then nothing."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[str] = []
        self.full = asyncio.Event()

    async def send(self, text: str) -> None:
        if len(self.sent) == self.room:
            self.full.set()
            await asyncio.Event().wait()
        self.sent.append(text)


def report(join: str) -> HostReport:
    return HostReport(join=join, profiles={}, require_local_confirm=False, sessions=[], os="linux", arch="x86_64")


async def emptied(outbox: Outbox, room: int) -> list[str]:
    socket = Socket(room)
    task = asyncio.create_task(outbox.empty_into(socket))
    for _ in range(50):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return socket.sent


async def test_what_is_said_again_before_it_went_out_waits_once():
    outbox = Outbox()
    for _ in range(1000):
        outbox.put(HostHeartbeat())
        outbox.put(HostSessionStarted(session_id=ONE))
        outbox.put(HostSessionStarted(session_id=TWO))
        outbox.put(HostSessionEnded(session_id=ONE, reason="idle"))
    assert await emptied(outbox, 100) == [
        encode(each)
        for each in (
            HostHeartbeat(),
            HostSessionStarted(session_id=ONE),
            HostSessionStarted(session_id=TWO),
            HostSessionEnded(session_id=ONE, reason="idle"),
        )
    ]


async def test_the_latest_report_goes_out_in_the_place_of_the_first():
    outbox = Outbox()
    outbox.put(report("1"))
    outbox.put(HostSessionStarted(session_id=ONE))
    outbox.put(report("2"))
    assert await emptied(outbox, 100) == [encode(report("2")), encode(HostSessionStarted(session_id=ONE))]


async def test_a_socket_that_takes_nothing_leaves_the_rest_waiting():
    outbox = Outbox()
    outbox.put(report("1"))
    outbox.put(HostSessionStarted(session_id=ONE))
    outbox.put(HostHeartbeat())
    assert await emptied(outbox, 1) == [encode(report("1"))]


async def test_a_failing_socket_is_the_writers_failure():
    class Broken:
        async def send(self, text: str) -> None:
            raise RuntimeError(text)

    outbox = Outbox()
    outbox.put(HostHeartbeat())
    with pytest.raises(RuntimeError):
        await outbox.empty_into(Broken())
