"""One timer for all links: real sockets, time by hand."""

import asyncio

from websockets.frames import Opcode

from bothy_server.terminal.adapters.sockets.forwarder import StreamForwarder
from bothy_server.terminal.adapters.sockets.heartbeat import Heartbeat
from bothy_server.terminal.adapters.sockets.pump import StreamPump


async def test_the_silent_are_pinged_and_then_given_up(relay, limits):
    heartbeat = Heartbeat(limits, relay.clock)
    silent, silent_peer = await relay.accept()
    alive, alive_peer = await relay.accept()
    heartbeat.watch(silent)
    heartbeat.watch(alive)
    assert relay.clock.armed == 1
    relay.clock.advance(limits.ping_interval + 10)
    for peer in (silent_peer, alive_peer):
        assert await peer.frame() == (Opcode.PING, b"")
    alive_peer.ping()
    assert await alive_peer.frame() == (Opcode.PONG, b"")
    relay.clock.advance(limits.ping_timeout)
    assert await relay.events.next() == ("gone", silent, 1006)
    assert not alive.is_leaving
    heartbeat.stop()
    assert not relay.clock.armed


async def test_a_link_that_fails_costs_the_others_nothing(relay, limits, monkeypatch, caplog):
    heartbeat = Heartbeat(limits, relay.clock)
    links, peers = zip(*[await relay.accept() for _ in range(3)], strict=True)
    sweep = StreamForwarder.sweep

    def faulty(link, now):
        if link is links[1]:
            raise ZeroDivisionError
        sweep(link, now)

    monkeypatch.setattr(StreamForwarder, "sweep", faulty)
    for link in links:
        heartbeat.watch(link)
    relay.clock.advance(limits.ping_interval + 10)
    for peer in (peers[0], peers[2]):
        assert await peer.frame() == (Opcode.PING, b"")
    assert await relay.events.next() == ("gone", links[1], 1006)
    assert {record.exc_info[0] for record in caplog.records} == {ZeroDivisionError}
    assert relay.clock.armed == 1
    heartbeat.stop()


async def test_the_timer_runs_while_there_is_something_to_watch(relay, limits):
    heartbeat = Heartbeat(limits, relay.clock)
    assert not relay.clock.armed
    link, _ = await relay.accept()
    heartbeat.watch(link)
    link.abort()
    assert await relay.events.next() == ("gone", link, 1006)
    assert relay.clock.armed == 1
    relay.clock.advance(limits.ping_interval)
    assert len(heartbeat) == 0
    assert not relay.clock.armed


async def test_a_link_without_traffic_waits_for_a_border_before_it_is_judged(relay, limits):
    """A counterpart that is slow in the middle of a frame keeps the ping back; that is not the peer's silence."""
    heartbeat = Heartbeat(limits, relay.clock)
    one, one_peer = await relay.accept()
    other, other_peer = await relay.accept()
    StreamPump().join(one, other)
    heartbeat.watch(other)
    one_peer.send(b"\x82\x85\x00\x00\x00\x00abcd")
    await other_peer.exactly(b"\x82\x05abcd")
    relay.clock.advance(10 * limits.ping_timeout)
    assert not other.is_leaving
    one_peer.send(b"e")
    await other_peer.exactly(b"e\x89\x00")
    relay.clock.advance(2 * limits.ping_timeout)
    assert await relay.events.next() == ("gone", other, 1006)
    heartbeat.stop()


async def test_totals_only_grow(relay, limits):
    heartbeat = Heartbeat(limits, relay.clock)
    links, peers = zip(*[await relay.accept() for _ in range(2)], strict=True)
    for link in links:
        heartbeat.watch(link)
    StreamPump().join(*links)
    peers[0].binary(b"12345")
    peers[1].binary(b"123")
    assert await peers[1].message() == b"12345"
    assert await peers[0].message() == b"123"
    assert (heartbeat.forwarded_bytes, heartbeat.forwarded_frames) == (8, 2)
    links[0].abort()
    await relay.events.next()
    relay.clock.advance(limits.ping_interval)
    assert len(heartbeat) == 1
    assert (heartbeat.forwarded_bytes, heartbeat.forwarded_frames) == (8, 2)
    heartbeat.stop()
    await asyncio.sleep(0)
