"""The data connection of one session, against a node that misbehaves on request."""

from __future__ import annotations

import asyncio
import logging
import uuid

import pytest

from bothy_host import data
from bothy_host.data import DataDialler
from bothy_wire import frames, limits


class Listener:
    """A session that has ``most`` messages to say."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.taken = 0
        self.size = 4
        self.most = 20
        self.heard: list[bytes] = []
        self.defect: str | None = None
        self.stir = lambda: None

    def paired(self) -> None:
        self.words.append("paired")
        self.stir()

    def unpaired(self) -> None:
        self.words.append("unpaired")

    def message(self, message: bytes) -> None:
        self.heard.append(message)
        if self.defect == "message":
            raise RuntimeError("a defect of the session")

    def take_outgoing(self) -> list[bytes]:
        if self.defect == "take_outgoing":
            raise RuntimeError("a defect of the channel")
        if self.taken == self.most:
            return []
        self.taken += 1
        return [self.taken.to_bytes(4, "big").ljust(self.size)]

    def stopped(self, code: int) -> None:
        self.words.append(f"stopped {code}")


class Ear:
    """What the node passes on."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def receive(self, message: bytes) -> None:
        self.heard.append(message)

    def gone(self) -> None:
        """The device left."""


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
async def dialler(prepared, listener):
    session_id = uuid.uuid4()
    made = DataDialler(prepared.host, session_id, limits.data_path(session_id), listener)
    listener.stir = made.stir
    yield made
    await made.stop()


async def paired(server, dialler):
    dialler.want()
    side = await server.side()
    side.device = Ear()
    await side.connection.send(frames.encode(frames.SidePaired()))
    await side.connection.send(b"go")
    return side


async def test_nothing_is_taken_from_the_session_while_the_socket_takes_nothing(server, dialler, listener, eventually):
    listener.size, listener.most = 60_000, 100_000
    dialler.want()
    side = await server.side()
    side.connection.transport.pause_reading()
    await side.connection.send(frames.encode(frames.SidePaired()))
    await eventually(lambda: listener.taken and dialler._current.socket.transport.get_write_buffer_size() > 0)
    before = listener.taken
    for _ in range(1000):
        dialler.stir()
        await asyncio.sleep(0)
    assert listener.taken < before + 100, "the kernel may take some more, each stir would be 1000"
    side.connection.transport.abort()


async def test_without_a_pairing_nothing_is_taken(server, dialler, listener):
    dialler.stir()
    dialler.want()
    side = await server.side()
    dialler.stir()
    await side.connection.ping()
    assert listener.taken == 0


async def test_an_unpairing_is_answered_by_ready_and_drops_what_was_taken(server, dialler, listener):
    side = await paired(server, dialler)
    await side.changes.until(lambda: len(side.device.heard) > 10)
    await side.leave()
    last = listener.taken
    listener.most += 20
    assert side.ready == 2
    side.device = Ear()
    await side.connection.send(frames.encode(frames.SidePaired()))
    await side.changes.until(lambda: side.device.heard)
    assert int.from_bytes(side.device.heard[0][:4], "big") > last
    assert listener.words[:3] == ["paired", "unpaired", "paired"]


@pytest.mark.parametrize("where", ["message", "take_outgoing"])
async def test_a_defect_is_a_lost_connection_and_the_session_is_dialled_again(server, dialler, listener, caplog, where):
    listener.defect = where
    await paired(server, dialler)
    await server.side(2)
    assert listener.words == ["paired", "unpaired"]
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


async def test_a_defect_before_the_acceptance_too(server, dialler, listener, monkeypatch):
    real = data.sign

    def broken(*_: object) -> bytes:
        monkeypatch.setattr(data, "sign", real)
        raise RuntimeError("a defect")

    monkeypatch.setattr(data, "sign", broken)
    dialler.want()
    await server.side()


@pytest.mark.parametrize("frame", [frames.SideUnpaired(), frames.SideAccepted(), frames.DataHello(challenge=bytes(32))])
async def test_a_frame_out_of_turn_is_answered_with_4105_and_tried_again_later(server, dialler, listener, frame):
    dialler.want()
    side = await server.side()
    await side.connection.send(frames.encode(frame))
    assert await side.until_closed() == 4105
    await server.side(2)


@pytest.mark.parametrize("first", ["binary", "wrong", "silence"])
async def test_a_server_that_does_not_begin_as_it_should_is_tried_again(
    server, prepared, dialler, listener, monkeypatch, first
):
    if first == "silence":
        prepared.host.settings = _with_dial_timeout(prepared.host.settings, 0.2)
    real, served = server._data, []

    async def odd(connection) -> None:
        served.append(connection)
        if len(served) > 1:
            return await real(connection)
        match first:
            case "binary":
                await connection.send(b"x")
            case "wrong":
                await connection.send(frames.encode(frames.SideAccepted()))
        return await connection.wait_closed()

    monkeypatch.setattr(server, "_data", odd)
    dialler.want()
    await server.side()
    assert served[0].close_code == {"silence": 1006}.get(first, 4105)


async def test_stopping_ends_an_attempt_under_way(server, prepared, listener, monkeypatch):
    async def silent(connection) -> None:
        reached.append(connection)
        server.changes.change()
        await connection.wait_closed()

    reached: list = []
    monkeypatch.setattr(server, "_data", silent)
    session_id = uuid.uuid4()
    dialler = DataDialler(prepared.host, session_id, limits.data_path(session_id), listener)
    dialler.want()
    await server.changes.until(lambda: reached)
    await dialler.stop()
    assert listener.words == []


def _with_dial_timeout(settings, seconds: float):
    from msgspec.structs import replace

    return replace(settings, host=replace(settings.host, dial_timeout=seconds))
