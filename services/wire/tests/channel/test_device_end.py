"""The device's end: what it says first, what it ignores, what fails it."""

from __future__ import annotations

import pytest

from bothy_wire.channel import Limits, device_end, records
from bothy_wire.channel.device_end import Exited, InputAcknowledged, Notice, Opened, Output, Pong, Refusal, Repaint
from bothy_wire.channel.handshake import Accepted, Refused, decode_message1, encode_payload, prologue
from bothy_wire.channel.noise import Responder
from bothy_wire.channel.records import Opener, Sealer
from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import OUTPUT_WINDOW_BYTES, REPAINT_TOTAL_BYTES

LINEAGE = bytes(range(16))


class Peer:
    """A host that says anything: the bare handshake and records."""

    def __init__(self, world) -> None:
        self.world = world
        self.end = world.device.end
        self.end.pair("token", 80, 24, 0.0)
        self.responder = Responder(world.host_key, prologue(world.session_id, world.host_id))
        (message1,) = self.end.take_outgoing()
        self.message1 = decode_message1(self.responder.read(message1))

    def answer(self, payload) -> list:
        message2 = self.responder.write(encode_payload(payload))
        send, receive = self.responder.split()
        self.sealer, self.opener = Sealer(send), Opener(receive)
        return self.end.receive(message2, 1.0)

    def say(self, *said: records.Record, now: float = 2.0) -> list:
        return [event for record in said for event in self.end.receive(self.sealer.seal(record), now)]

    def hear(self) -> list[records.Record | None]:
        return [self.opener.open(message) for message in self.end.take_outgoing()]


def accepted(resume="new", lineage=LINEAGE, output_position=0, input_received=0) -> Accepted:
    return Accepted(resume=resume, lineage=lineage, output_position=output_position, input_received=input_received)


@pytest.fixture
def peer(make_world) -> Peer:
    """A peer whose channel with the device is open."""
    peer = Peer(make_world())
    peer.answer(accepted(output_position=1000))
    return peer


def test_message_1_says_what_is_asked_for(make_world):
    message1 = Peer(make_world()).message1
    assert (message1.token, message1.profile, message1.session_user) == ("token", "shell", "alex-shell")
    assert (message1.columns, message1.rows, message1.term) == (80, 24, "xterm-256color")
    assert (message1.lineage, message1.output_processed, message1.input_sent) == (None, 0, 0)


def test_the_first_record_is_an_ack_of_where_output_starts(make_world):
    peer = Peer(make_world())
    peer.end.write(b"typed ahead")
    peer.end.resize(100, 30)
    assert not peer.end.open
    assert peer.answer(accepted(output_position=7)) == [Opened("new", 7, 0)]
    assert peer.end.open
    assert peer.end.opened_once
    assert peer.hear() == [records.Ack(7), records.Resize(100, 30), records.Data(b"typed ahead")]


def test_only_the_latest_size_is_sent_and_it_overtakes_what_waits(make_world):
    peer = Peer(make_world(Limits(input_window=3)))
    peer.answer(accepted())
    peer.end.write(b"abcdef")
    assert peer.hear() == [records.Ack(0), records.Data(b"abc")]
    peer.end.resize(1, 2)
    peer.end.resize(3, 4)
    peer.end.ping(5.0)
    assert peer.hear() == [records.Resize(3, 4), records.Ping()]
    assert peer.say(records.Ack(2)) == [InputAcknowledged(2)]
    assert peer.hear() == [records.Data(b"de")]


def test_a_size_of_the_outage_travels_in_message_1(peer):
    peer.end.unpaired()
    peer.end.resize(90, 30)
    again = Peer(peer.world)
    again.answer(accepted("repaint", input_received=0))
    assert [type(record) for record in again.hear()] == [records.Ack]


def test_the_handshake_has_a_deadline(make_world):
    peer = Peer(make_world(Limits(handshake_timeout=0.5)))
    assert peer.end.deadline() == 0.5
    with pytest.raises(ChannelError, match="too long"):
        peer.answer(accepted())
    assert peer.end.deadline() is None


def test_an_open_channel_has_no_deadline(peer):
    assert peer.end.deadline() is None


def test_a_refusal_is_told_once_and_then_nothing_is_read(make_world):
    peer = Peer(make_world())
    assert peer.answer(Refused(code="profile_mismatch")) == [Refusal("profile_mismatch")]
    assert not peer.end.open
    assert peer.end.receive(b"anything", 1.0) == []
    assert peer.end.take_outgoing() == []


def test_a_failed_channel_raises_once_and_then_ignores_all(peer):
    peer.end.write(b"kept")
    with pytest.raises(ChannelError) as caught:
        peer.end.receive(bytes(40), 2.0)
    assert caught.value.code == 4107
    assert peer.say(records.Data(b"x")) == []
    assert peer.end.take_outgoing() == []
    assert not peer.end.open
    assert peer.end.pending_input == 4
    peer.end.unpaired()
    with pytest.raises(ChannelError, match="outside"):
        peer.end.receive(b"x", 2.0)


def test_a_message_2_that_does_not_open_fails(make_world):
    peer = Peer(make_world())
    with pytest.raises(ChannelError):
        peer.end.receive(bytes(100), 1.0)
    assert peer.end.receive(bytes(100), 1.0) == []


def test_a_host_key_that_is_none(make_world):
    world = make_world()
    end = device_end.DeviceEnd(
        channel_key=world.host_key,
        host_channel_key=bytes(32),
        session_id=world.session_id,
        host_id=world.host_id,
        profile="shell",
        session_user="alex-shell",
        term="xterm",
        limits=Limits(),
    )
    with pytest.raises(ChannelError):
        end.pair("token", 80, 24, 0.0)


def test_what_is_shown(peer):
    assert peer.say(
        records.Repaint(b"scr", last=False),
        records.Notice("hello"),
        records.Repaint(b"een", last=True),
        records.Data(b"$ "),
        records.Exit(3),
        records.Notice("bye"),
    ) == [Repaint(b"scr", False), Notice("hello"), Repaint(b"een", True), Output(b"$ "), Exited(3), Notice("bye")]


def test_an_unknown_record_with_the_high_bit_changes_nothing(peer):
    raw = peer.sealer._cipher.encrypt(b"\x90from the future")
    assert peer.end.receive(raw, 2.0) == []
    assert peer.say(records.Data(b"$ ")) == [Output(b"$ ")]


@pytest.mark.parametrize(
    "said",
    [
        [records.Resize(80, 24)],
        [records.Ping()],
        [records.Pong()],
        [records.Ack(1)],
        [records.Exit(0), records.Data(b"x")],
        [records.Exit(0), records.Exit(0)],
        [records.Exit(0), records.Repaint(b"", last=True)],
        [records.Repaint(b"", last=False), records.Data(b"x")],
        [records.Repaint(b"", last=False), records.Exit(0)],
    ],
)
def test_what_is_not_allowed_fails_the_channel(peer, said):
    *allowed, refused = said
    peer.say(*allowed)
    with pytest.raises(ChannelError):
        peer.say(refused)
    assert not peer.end.open


def test_output_beyond_the_bound_fails_the_channel(make_world):
    peer = Peer(make_world())
    peer.answer(accepted())
    piece = records.Data(bytes(32 * 1024))
    peer.say(*[piece] * (OUTPUT_WINDOW_BYTES // len(piece.data)))
    peer.end.processed(len(piece.data))
    peer.say(piece)
    peer.say(records.Exit(0))  # needs no window
    with pytest.raises(ChannelError):
        peer.say(records.Data(b"x"))


def test_output_is_acknowledged_each_quarter_of_what_waits_and_when_all_is_shown(make_world):
    peer = Peer(make_world())
    peer.answer(accepted())
    assert peer.hear() == [records.Ack(0)]
    peer.say(records.Data(bytes(100)))
    peer.end.processed(24)
    assert peer.hear() == []
    peer.end.processed(1)
    assert peer.hear() == [records.Ack(25)]
    peer.end.processed(18)
    peer.end.flush()
    assert peer.hear() == [records.Ack(43)]
    peer.say(records.Data(bytes(43)))
    peer.end.processed(24)
    assert peer.hear() == []
    peer.end.processed(76)
    assert peer.hear() == [records.Ack(143)]
    peer.end.processed(0)
    assert peer.hear() == []
    with pytest.raises(LocalError):
        peer.end.processed(1)


def test_processed_counts_without_a_channel(peer):
    peer.say(records.Data(b"abc"))
    peer.end.unpaired()
    peer.end.processed(2)
    peer.end.flush()
    assert Peer(peer.world).message1.output_processed == 1002


def test_one_ping_at_a_time(peer):
    assert peer.end.round_trip is None
    peer.hear()
    peer.end.ping(10.0)
    peer.end.ping(11.0)
    assert peer.hear() == [records.Ping()]
    assert peer.say(records.Pong(), now=10.25) == [Pong(0.25)]
    assert peer.end.round_trip == 0.25
    with pytest.raises(ChannelError):
        peer.say(records.Pong())
    peer.end.ping(12.0)
    assert peer.end.take_outgoing() == []


def test_unsent_input_can_be_dropped(make_world):
    peer = Peer(make_world(Limits(input_window=3)))
    peer.answer(accepted())
    peer.end.write(b"abcdef")
    peer.hear()
    assert (peer.end.pending_input, peer.end.unsent_input) == (6, 3)
    assert peer.end.drop_unsent() == 3
    assert (peer.end.pending_input, peer.end.unsent_input) == (3, 0)


@pytest.mark.parametrize(
    "answer",
    [
        accepted("new", lineage=b"another lineage!", input_received=1),
        accepted("repaint", lineage=b"another lineage!"),
        accepted("exact", lineage=b"another lineage!", output_position=1000),
        accepted("exact", output_position=999),
        accepted("exact", output_position=1000, input_received=1),
        accepted("repaint", input_received=1),
    ],
)
def test_a_resume_of_what_was_not_presented_fails_and_keeps_what_was_typed(peer, answer):
    peer.say(records.Notice("the host is there"))
    peer.end.unpaired()
    peer.end.write(b"typed")
    again = Peer(peer.world)
    assert (again.message1.lineage, again.message1.output_processed) == (LINEAGE, 1000)
    with pytest.raises(ChannelError):
        again.answer(answer)
    assert peer.end.pending_input == 5


@pytest.mark.parametrize("resume", ["repaint", "exact"])
def test_the_first_channel_cannot_resume(make_world, resume):
    with pytest.raises(ChannelError):
        Peer(make_world()).answer(accepted(resume))


def test_input_of_a_lineage_that_is_gone_is_dropped_and_told(peer):
    peer.end.write(b"sent")
    peer.hear()
    peer.end.unpaired()
    peer.end.write(b"unsent")
    again = Peer(peer.world)
    assert again.answer(accepted(lineage=b"another lineage!")) == [Opened("new", 0, 10)]
    assert peer.end.pending_input == 0


def test_keys_survive_a_lineage_that_nobody_heard_of(make_world):
    world = make_world()
    Peer(world).answer(accepted())
    world.device.end.write(b"ls\r")
    world.device.end.unpaired()
    peer = Peer(world)
    assert peer.answer(accepted(lineage=bytes(16))) == [Opened("new", 0, 0)]
    assert peer.hear()[-1] == records.Data(b"ls\r")


@pytest.mark.parametrize("proof", ["sent", "heard"])
def test_keys_for_a_lineage_that_the_host_may_have_are_dropped(make_world, proof):
    world = make_world()
    peer = Peer(world)
    peer.answer(accepted())
    world.device.end.write(b"ls\r")
    peer.hear() if proof == "sent" else peer.say(records.Ack(0))
    world.device.end.unpaired()
    peer = Peer(world)
    assert peer.answer(accepted(lineage=bytes(16))) == [Opened("new", 0, 3)]


@pytest.mark.parametrize("last", [True, False])
def test_repaints_beyond_the_bound_fail_the_channel(peer, last):
    piece = records.Repaint(bytes(REPAINT_TOTAL_BYTES // 32), last=last)
    assert len(peer.say(*[piece] * 32)) == 32
    with pytest.raises(ChannelError):
        peer.say(records.Repaint(b"x", last=True))


def test_a_relay_that_does_not_read_is_owed_one_acknowledgement(peer):
    for _ in range(2_000):
        peer.say(records.Data(b"x"))
        peer.end.processed(1)
    assert peer.hear() == [records.Ack(3_000)]
