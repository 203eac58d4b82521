"""What a link does in each of its states, over real sockets."""

import asyncio
import socket

import pytest
from websockets.frames import Frame, Opcode

from bothy_server.terminal.adapters.sockets.pump import StreamPump

PUMP = StreamPump()


async def joined(relay, **limits):
    one, one_peer = await relay.accept(**limits)
    other, other_peer = await relay.accept(**limits)
    PUMP.join(one, other)
    return one, one_peer, other, other_peer


def header_and(payload: bytes, size: int, *, opcode: Opcode = Opcode.BINARY, fin: bool = True) -> bytes:
    """A masked frame of ``size`` bytes of which only ``payload`` is there."""
    whole = Frame(opcode, payload + bytes(size - len(payload)), fin).serialize(mask=True)
    return whole[: len(whole) - size + len(payload)]


async def stall(sender, receiver) -> None:
    """Send to a link whose peer does not read until it takes nothing more."""
    async with asyncio.timeout(30):
        while not receiver.writer.paused:
            sender.binary(bytes(4096))
            await sender.writer.drain()
            await asyncio.sleep(0)


# Lone


async def test_a_lone_link_answers_pings(relay):
    _, peer = await relay.accept()
    peer.ping(b"are you there")
    assert await peer.frame() == (Opcode.PONG, b"are you there")


async def test_a_lone_link_takes_no_message(relay):
    for send in ("binary", "text"):
        link, peer = await relay.accept()
        getattr(peer, send)(b"early")
        assert await peer.close_code() == 4105
        assert await relay.events.next() == ("gone", link, 4105)
        await peer.end()


async def test_texts_go_to_the_peer_in_order(relay):
    link, peer = await relay.accept()
    link.send_text("one")
    link.send_text("two")
    assert await peer.frame() == (Opcode.TEXT, b"one")
    assert await peer.frame() == (Opcode.TEXT, b"two")


# Paired


async def test_messages_pass_both_ways_behind_the_texts_sent_before(relay):
    one, one_peer = await relay.accept()
    other, other_peer = await relay.accept()
    one_peer_early = asyncio.ensure_future(one_peer.frame())
    for link in (one, other):
        link.send_text("side.paired")
    PUMP.join(one, other)
    one_peer.binary(b"to the other")
    other_peer.binary(b"to the one", fin=False)
    other_peer.more(b", in two")
    assert await one_peer_early == (Opcode.TEXT, b"side.paired")
    assert await one_peer.message() == b"to the one, in two"
    assert await other_peer.frame() == (Opcode.TEXT, b"side.paired")
    assert await other_peer.message() == b"to the other"
    assert (one.forwarded_bytes, one.forwarded_frames) == (12, 1)
    assert (other.forwarded_bytes, other.forwarded_frames) == (18, 2)


async def test_payload_is_forwarded_before_its_message_is_whole(relay):
    _, one_peer, _, other_peer = await joined(relay)
    one_peer.send(header_and(b"begin", 1000))
    await other_peer.exactly(b"\x82\x7e\x03\xe8begin")


async def test_a_text_while_paired_is_a_violation_at_its_header(relay):
    one, one_peer, other, other_peer = await joined(relay)
    one_peer.binary(b"last")
    one_peer.send(b"\x81\xfe")
    assert await one_peer.close_code() == 4105
    assert await relay.events.next() == ("gone", one, 4105)
    assert await other_peer.message() == b"last"
    PUMP.part(one, other)
    other.send_text("side.unpaired")  # the counterpart is not closed
    assert await other_peer.frame() == (Opcode.TEXT, b"side.unpaired")


async def test_own_frames_wait_for_their_border(relay):
    one, one_peer, other, other_peer = await joined(relay)
    half = header_and(b"ab", 4, fin=False)
    one_peer.send(half)
    await other_peer.exactly(b"\x02\x04ab")
    other.send_text("text")
    other_peer.ping(b"1")
    other_peer.ping(b"2")
    other_peer.binary(b"both were read")
    assert await one_peer.message() == b"both were read"
    # The frame's mask is in the half that was sent.
    mask = half[2:6]
    one_peer.send(bytes(byte ^ mask[index + 2] for index, byte in enumerate(b"cd")))
    await other_peer.exactly(b"cd")
    await other_peer.exactly(b"\x8a\x012")  # the newest pong, behind the frame
    one_peer.more(b"!")
    await other_peer.exactly(b"\x80\x01!")
    await other_peer.exactly(b"\x81\x04text")  # the text, behind the message
    assert not one.is_leaving


async def test_a_message_that_is_too_large_in_a_later_fragment(relay):
    one, one_peer, other, other_peer = await joined(relay, max_frame_bytes=100)
    one_peer.binary(bytes(100), fin=False)
    one_peer.more(b"x")
    assert await one_peer.close_code() == 1009
    assert await relay.events.next() == ("gone", one, 1009)
    PUMP.part(one, other)
    other.discard(True)
    other.send_text("side.unpaired")
    assert await other_peer.message() == bytes(100)
    assert await other_peer.frame() == (Opcode.TEXT, b"side.unpaired")


async def test_a_frame_of_2_to_the_40_bytes_is_refused_at_its_length(relay):
    _, one_peer, _, _ = await joined(relay)
    one_peer.send(bytes.fromhex("82ff0000010000000000"))
    assert await one_peer.close_code() == 1009


async def test_a_violation_is_told_before_the_connection_ends_without_a_reset(relay):
    link, peer = await relay.accept()
    peer.text(b"early")
    peer.send(bytes(1 << 20))  # unread by then
    assert await peer.close_code() == 4105
    await peer.end()
    assert await relay.events.next() == ("gone", link, 4105)


# Parting and being unpaired


@pytest.mark.parametrize("leave", ["vanish", "hang_up", "close", "abort"])
async def test_the_message_of_a_side_that_goes_is_filled(relay, leave):
    one, one_peer, other, other_peer = await joined(relay)
    one_peer.send(header_and(b"begin", 300, fin=False))
    await other_peer.exactly(b"\x02\x7e\x01\x2cbegin")
    match leave:
        case "abort":
            one.abort()
        case "close":
            one.close(4100, "ended")
            assert await one_peer.close_code() == 4100
            one_peer.vanish()
        case "vanish":
            one_peer.vanish()
        case "hang_up":
            one_peer.writer.close()
    code = 4100 if leave == "close" else 1006
    assert await relay.events.next() == ("gone", one, code)
    PUMP.part(one, other)
    other.discard(True)
    other.send_text("side.unpaired")
    await other_peer.exactly(bytes(295))
    await other_peer.exactly(b"\x80\x00")
    assert await other_peer.frame() == (Opcode.TEXT, b"side.unpaired")


async def test_a_close_stands_behind_a_filled_message(relay):
    _, one_peer, other, other_peer = await joined(relay)
    one_peer.send(header_and(b"begin", 10))
    await other_peer.exactly(b"\x82\x0abegin")
    other.close(4103, "replaced")
    await other_peer.exactly(bytes(5))
    assert await other_peer.close_code() == 4103
    one_peer.send(bytes(5))  # the rest of the frame goes nowhere
    one_peer.binary(b"and neither does this")
    one_peer.ping(b"still served")
    assert await one_peer.frame() == (Opcode.PONG, b"still served")
    other_peer.close(b"\x10\x07")
    assert await relay.events.next() == ("gone", other, 4103)
    await other_peer.end()


async def test_an_unpaired_link_drops_binary_until_it_is_ready(relay):
    one, one_peer, other, other_peer = await joined(relay)
    one_peer.send(header_and(b"old", 50, fin=False))
    await other_peer.exactly(b"\x02\x32old")
    PUMP.part(one, other)
    for link in (one, other):
        link.discard(True)
    one_peer.send(bytes(47))
    one_peer.more(b"old too")
    one_peer.binary(b"still old")
    one_peer.text(b'{"type":"side.ready"}')
    other_peer.text(b'{"type":', fin=False)
    other_peer.more(b'"side.ready"}')
    for _ in range(2):
        kind, link, payload = await relay.events.next()
        assert (kind, payload) == ("text", b'{"type":"side.ready"}')
        link.discard(False)
    PUMP.join(one, other)
    one_peer.binary(b"new")
    await other_peer.exactly(bytes(47) + b"\x80\x00")
    assert await other_peer.message() == b"new"


async def test_an_unpaired_link_takes_one_text(relay):
    link, peer = await relay.accept()
    link.discard(True)
    peer.text(b"ready")
    peer.text(b"ready")
    assert await peer.close_code() == 4105
    assert await relay.events.next() == ("text", link, b"ready")
    assert await relay.events.next() == ("gone", link, 4105)


async def test_an_unpaired_link_takes_a_short_text_only(relay):
    link, peer = await relay.accept(max_unidentified_frame_bytes=10)
    link.discard(True)
    peer.binary(bytes(11))
    peer.text(bytes(11))
    assert await peer.close_code() == 1009


async def test_binary_behind_the_answer_is_a_violation(relay):
    link, peer = await relay.accept()
    link.discard(True)
    peer.text(b"ready")
    peer.binary(b"too early")
    assert await peer.close_code() == 4105


async def test_parting_twice_or_from_another_does_nothing(relay):
    one, one_peer, other, other_peer = await joined(relay)
    third, _ = await relay.accept()
    PUMP.part(one, third)
    one_peer.binary(b"still joined")
    assert await other_peer.message() == b"still joined"
    PUMP.part(one, other)
    PUMP.part(one, other)
    one_peer.binary(b"dropped")
    one_peer.ping()
    assert await one_peer.frame() == (Opcode.PONG, b"")
    assert other.forwarded_bytes == 0
    assert one.forwarded_bytes == len(b"still joined")


async def test_joining_with_a_side_that_is_leaving(relay):
    one, one_peer = await relay.accept()
    other, _ = await relay.accept()
    other.abort()
    PUMP.join(one, other)
    one_peer.binary(b"nobody takes it, nobody minds")
    one_peer.ping()
    assert await one_peer.frame() == (Opcode.PONG, b"")
    assert await relay.events.next() == ("gone", other, 1006)


# Leaving


async def test_the_close_of_a_peer_is_answered_and_told(relay):
    one, one_peer, other, other_peer = await joined(relay)
    one_peer.binary(b"last")
    one_peer.close(b"\x10\x0bfailed")
    assert await one_peer.frame() == (Opcode.CLOSE, b"\x10\x0bfailed")
    await one_peer.end()
    assert await relay.events.next() == ("gone", one, 4107)
    assert await other_peer.message() == b"last"
    assert not other.is_leaving
    assert not one_peer.writer.is_closing()


async def test_a_close_without_a_code(relay):
    link, peer = await relay.accept()
    peer.close()
    assert await peer.frame() == (Opcode.CLOSE, b"")
    assert await relay.events.next() == ("gone", link, 1005)


async def test_after_gone_everything_does_nothing(relay):
    link, peer = await relay.accept()
    peer.vanish()
    assert await relay.events.next() == ("gone", link, 1006)
    link.send_text("late")
    link.close(1000)
    link.discard(True)
    link.abort()
    link.sweep(10_000)
    assert link.is_gone
    await asyncio.sleep(0)
    assert relay.events.told.empty()
    assert not relay.clock.armed


async def test_a_peer_that_does_not_answer_a_close_is_aborted(relay):
    link, peer = await relay.accept()
    link.close(1012)
    link.close(1000)  # the first one counts
    link.send_text("nothing follows a close frame")
    assert await peer.close_code() == 1012
    peer.ping()
    peer.binary(b"ignored")
    relay.clock.advance(10)
    assert await relay.events.next() == ("gone", link, 1012)
    with pytest.raises(ConnectionResetError):
        await peer.end()


async def test_what_is_queued_is_written_before_the_close(relay):
    _, one_peer, other, other_peer = await joined(relay, receive_bytes=4096, max_frame_bytes=1 << 20)
    one_peer.binary(bytes(1 << 20))
    one_peer.ping()
    assert await one_peer.frame() == (Opcode.PONG, b"")  # so all was read from this side
    other.close(4100, "the program ended")
    assert await other_peer.message() == bytes(1 << 20)
    assert await other_peer.frame() == (Opcode.CLOSE, b"\x10\x04the program ended")


async def test_nothing_is_told_within_a_call_of_the_owner(relay):
    link, _ = await relay.accept()
    link.abort()
    assert relay.events.told.empty()
    assert await relay.events.next() == ("gone", link, 1006)


# Back-pressure and life


async def test_the_socket_buffer_is_set_when_asked_for(relay):
    link, _ = await relay.accept(socket_buffer_bytes=32 * 1024)
    connection = link.transport.get_extra_info("socket")
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 64 * 1024  # Linux doubles what it is told


async def test_a_flood_of_pings_costs_one_pong(relay, turns_until):
    link, peer = await relay.accept(
        buffer_high_bytes=2000, buffer_low_bytes=1000, receive_bytes=4096, socket_buffer_bytes=4096
    )
    flood = b"".join(Frame(Opcode.PING, b"%07d" % number).serialize(mask=True) for number in range(50_000))
    peer.send(flood)
    await turns_until(lambda: link.writer.paused and not peer.writer.transport.get_write_buffer_size())
    assert link.transport.get_write_buffer_size() < 2000 + 256
    pongs = 0
    while True:
        opcode, payload = await peer.frame()
        pongs += 1
        assert opcode == Opcode.PONG
        if payload == b"0049999":
            break
    assert pongs < 50_000


async def test_a_stalled_link_pauses_its_counterpart_and_says_so_once(relay):
    one, one_peer, other, _ = await joined(relay, receive_bytes=4096, socket_buffer_bytes=4096)
    await stall(one_peer, other)
    assert not one.transport.is_reading()
    for _ in range(13):
        relay.clock.advance(10)
        other.sweep(relay.clock.monotonic())
        one.sweep(relay.clock.monotonic())
    assert await relay.events.next() == ("stalled", other, None)
    await asyncio.sleep(0)
    assert relay.events.told.empty()
    PUMP.part(one, other)
    assert one.transport.is_reading()
    other.close(4106)
    relay.clock.advance(10)
    assert await relay.events.next() == ("gone", other, 4106)


async def test_a_link_whose_kernel_buffer_moves_is_slow_and_not_stalled(relay, turns_until):
    """The kernel asks for more only when a third of its buffer is free, which is minutes at a few kB/s."""
    _, one_peer, other, other_peer = await joined(relay, receive_bytes=4096, socket_buffer_bytes=512 * 1024)
    await stall(one_peer, other)
    queued, ours = [other.writer.queued_bytes()], other.transport.get_write_buffer_size()
    for _ in range(13):
        relay.clock.advance(10)
        other.sweep(relay.clock.monotonic())
        await other_peer.reader.readexactly(8192)
        await turns_until(lambda: other.writer.queued_bytes() < queued[-1])
        queued.append(other.writer.queued_bytes())
    assert other.transport.get_write_buffer_size() == ours
    assert relay.events.told.empty()


async def test_joining_to_a_side_that_takes_nothing_pauses_at_once(relay):
    one, one_peer, other, _ = await joined(relay, receive_bytes=4096, socket_buffer_bytes=4096)
    await stall(one_peer, other)
    PUMP.part(one, other)
    third, _ = await relay.accept()
    other.discard(False)
    PUMP.join(third, other)
    assert not third.transport.is_reading()
    other.abort()
    assert third.transport.is_reading()


async def test_a_stalled_link_whose_peer_vanishes_lets_go(relay):
    one, one_peer, other, other_peer = await joined(relay, receive_bytes=4096, socket_buffer_bytes=4096)
    await stall(one_peer, other)
    other_peer.vanish()
    assert await relay.events.next() == ("gone", other, 1006)
    assert one.transport.is_reading()
    one_peer.ping()
    assert await one_peer.frame() == (Opcode.PONG, b"")
