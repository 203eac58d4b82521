"""The verifier: many pairs at once, all that a peer may legally do, read by a strict reader of another make.

Each round of a pair is one pairing. Rounds end in the middle of messages, and then everything that arrived must be what
was sent in that round, in order, the last message at most filled up with zero bytes. The last round must be complete.
"""

import asyncio
import hashlib
import random
from dataclasses import dataclass, field

import pytest
import uvloop
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol

from bothy_server.terminal.adapters.sockets.pump import StreamPump

PUMP = StreamPump()
MAX_BYTES = 64 * 1024 + 256
PAIRED, UNPAIRED, READY = b"paired", b"unpaired", b"ready"


@dataclass
class Side:
    """The far end of one link: it sends at random while paired, and reads at its own pace."""

    peer: object
    chance: random.Random
    read_bytes: int
    write_bytes: int
    largest: int
    paired: bool = False
    pairings: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    partings: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    sent: list[list[bytes]] = field(default_factory=list)
    received: list[list[bytes]] = field(default_factory=list)
    pings: list[bytes] = field(default_factory=list)
    pongs: list[bytes] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)
    beats: int = 0

    async def read(self) -> None:
        protocol, parts = Protocol(CLIENT), []
        while data := await self.peer.reader.read(self.chance.randint(1, self.read_bytes)):
            protocol.receive_data(data)
            assert protocol.parser_exc is None, protocol.parser_exc
            for frame in protocol.events_received():
                match frame.opcode:
                    case Opcode.BINARY | Opcode.CONT:
                        parts.append(bytes(frame.data))
                        if frame.fin:
                            self.received[-1].append(b"".join(parts))
                            parts = []
                    case Opcode.TEXT if frame.data == PAIRED:
                        self.received.append([])
                        self.sent.append([])
                        self.paired = True
                        self.pairings.put_nowait(None)
                    case Opcode.TEXT:
                        assert frame.data == UNPAIRED
                        self.paired = False
                        self.partings.put_nowait(None)
                    case Opcode.PONG:
                        self.pongs.append(bytes(frame.data))
                    case Opcode.PING:
                        self.beats += 1
                        self.replies.append(Frame(Opcode.PONG, bytes(frame.data)).serialize(mask=True))
                    case Opcode.CLOSE:
                        return
            if self.chance.random() < 0.1:
                await asyncio.sleep(0)

    async def write(self, data: bytes) -> None:
        """Write in odd pieces."""
        at = 0
        while at < len(data):
            size = self.chance.randint(1, self.write_bytes)
            self.peer.send(data[at : at + size])
            at += size
            await self.peer.writer.drain()
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)

    async def between_frames(self) -> None:
        if self.chance.random() < 0.2:
            self.pings.append(b"%d" % len(self.pings))
            await self.write(Frame(Opcode.PING, self.pings[-1]).serialize(mask=True))
        while self.replies:
            await self.write(self.replies.pop())

    async def send_round(self, messages: int) -> None:
        """Send this many messages, or fewer when the counterpart goes; then say that the old pairing is over."""
        await self.pairings.get()
        sent = self.sent[-1]
        while len(sent) < messages and self.paired:
            size = self.chance.choice(
                (0, 1, 125, 126, self.chance.randint(0, 300), self.chance.randint(0, self.largest))
            )
            message = self.chance.randbytes(size)
            sent.append(message)
            at, opcode = 0, Opcode.BINARY
            while True:
                end = size if self.chance.random() < 0.6 else self.chance.randint(at, size)
                fin = end == size and self.chance.random() < 0.8
                await self.between_frames()
                await self.write(Frame(opcode, message[at:end], fin).serialize(mask=True))
                if fin:
                    break
                at, opcode = end, Opcode.CONT

    async def say_ready(self) -> None:
        await self.partings.get()
        await self.write(Frame(Opcode.TEXT, READY).serialize(mask=True))


def check_round(sent: list[bytes], received: list[bytes], *, complete: bool) -> None:
    if complete:
        assert received == sent
        return
    assert len(received) <= len(sent)
    assert received[:-1] == sent[: max(len(received) - 1, 0)]
    if received:
        *_, last = received
        original = sent[len(received) - 1]
        assert len(last) <= len(original)
        kept = next((at for at, (mine, theirs) in enumerate(zip(last, original, strict=False)) if mine != theirs), None)
        assert kept is None or not any(last[kept:])


async def everything_arrived(sides: list[Side], turns_until) -> None:
    one, other = sides
    for sender, receiver in ((one, other), (other, one)):
        await turns_until(lambda s=sender, r=receiver: len(s.sent[-1]) == len(r.received[-1]))
        await turns_until(lambda s=sender: s.pings[-1:] == s.pongs[-1:])


async def verify_pair(relay, turns_until, seed: int, *, rounds: int, messages: int) -> None:
    chance = random.Random(seed)
    events = type(relay.events)()
    largest = chance.choice((300, 5000, MAX_BYTES))
    links, sides = [], []
    for _ in range(2):
        link, peer = await relay.accept(
            events=events,
            max_frame_bytes=largest,
            receive_bytes=chance.choice((None, 4096)),
            socket_buffer_bytes=chance.choice((None, 4096)),
            buffer_high_bytes=chance.choice((1000, 256 * 1024)),
            buffer_low_bytes=chance.choice((0, 500)),
        )
        links.append(link)
        reads, writes = chance.choice((100, 5000, 100_000)), chance.choice((100, 5000, 100_000))
        sides.append(Side(peer, random.Random(chance.random()), reads, writes, largest))

    async with asyncio.TaskGroup() as tasks:
        readers = [tasks.create_task(side.read()) for side in sides]
        for number in range(rounds):
            complete = number == rounds - 1
            for link in links:
                link.send_text(PAIRED.decode())
            PUMP.join(*links)
            senders = [tasks.create_task(side.send_round(messages)) for side in sides]
            if complete:
                await asyncio.gather(*senders)
                await everything_arrived(sides, turns_until)
                break
            for _ in range(chance.randint(1, 200)):
                await asyncio.sleep(0)
                if chance.random() < 0.05:
                    chance.choice(links).writer.send_control(Opcode.PING, b"")
            PUMP.part(*links)
            for link in links:
                link.discard(True)
                link.send_text(UNPAIRED.decode())
            for side, sender in zip(sides, senders, strict=True):
                await sender
                await side.say_ready()
            for _ in links:
                kind, link, payload = await events.next()
                assert (kind, payload) == ("text", READY)
                link.discard(False)
        for link in links:
            link.close(1000)
        await asyncio.gather(*readers)

    for side, counterpart in (sides, sides[::-1]):
        assert len(side.sent) == len(counterpart.received) == rounds
        for number, (sent, received) in enumerate(zip(side.sent, counterpart.received, strict=True)):
            check_round(sent, received, complete=number == rounds - 1)
        # A pong may be left out for a newer one, never repeated or out of order.
        order = [int(pong) for pong in side.pongs]
        assert order == sorted(set(order))
        assert set(side.pongs) <= set(side.pings)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("seed", range(3))
def test_every_stream_is_valid_and_equal(make_relay, turns_until, run, seed):
    async def verify() -> None:
        async with asyncio.timeout(60), make_relay() as relay, asyncio.TaskGroup() as pairs:
            for number in range(12):
                pairs.create_task(verify_pair(relay, turns_until, seed * 100 + number, rounds=6, messages=30))

    run(verify())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_reader_that_stops_costs_a_bounded_amount_and_holds_up_nobody_else(make_relay, run):
    high, message, count = 256 * 1024, random.Random(1).randbytes(MAX_BYTES), 800

    async def scenario() -> None:
        async with asyncio.timeout(60), make_relay() as relay:
            one, sender = await relay.accept(max_frame_bytes=MAX_BYTES)
            other, reader = await relay.accept(max_frame_bytes=MAX_BYTES, socket_buffer_bytes=64 * 1024)
            PUMP.join(one, other)
            third, third_peer = await relay.accept()
            fourth, fourth_peer = await relay.accept()
            PUMP.join(third, fourth)

            sent = 0

            async def flood() -> None:
                nonlocal sent
                for _ in range(count):
                    sender.binary(message)
                    await sender.writer.drain()
                    sent += 1

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(flood())
                # Echo elsewhere until the flood has stood still for hundreds of round trips.
                before, still = -1, 0
                while still < 500:
                    third_peer.binary(b"key")
                    assert await fourth_peer.message() == b"key"
                    fourth_peer.binary(b"echo")
                    assert await third_peer.message() == b"echo"
                    still = still + 1 if sent == before else 0
                    before = sent
                assert 0 < sent < count / 2
                assert other.writer.paused
                assert not one.transport.is_reading()
                assert third.transport.is_reading()
                assert other.writer.queued_bytes() <= 2 * high  # the mark, and one read beyond it

                expected, received = hashlib.sha256(), hashlib.sha256()
                for _ in range(count):
                    expected.update(message)
                    received.update(await reader.message())
                assert received.digest() == expected.digest()

    run(scenario())
