"""The host's end: nothing changes before the device's first record, and nothing overtakes the end."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_wire.channel import Limits, records
from bothy_wire.channel.handshake import Accepted, Message1, Refused, decode_message2, encode_payload, prologue
from bothy_wire.channel.host_end import Acknowledged, Input, Offered, Opened, Pinged, Resized
from bothy_wire.channel.noise import Initiator
from bothy_wire.channel.records import Opener, Sealer
from bothy_wire.errors import ChannelError, LocalError
from bothy_wire.limits import REPAINT_TOTAL_BYTES

LINEAGE = bytes(range(16))


def message1(**changes) -> Message1:
    fields = {
        "token": "token",
        "profile": "shell",
        "session_user": "alex-shell",
        "columns": 80,
        "rows": 24,
        "term": "xterm",
        "lineage": None,
        "output_processed": 0,
        "input_sent": 0,
    }
    return Message1(**fields | changes)


class Peer:
    """A device that says anything: the bare handshake and records."""

    def __init__(self, world) -> None:
        self.world, self.end = world, world.host.end
        self.key = X25519PrivateKey.generate()
        self.initiator = Initiator(
            self.key, world.host_key.public_key().public_bytes_raw(), prologue(world.session_id, world.host_id)
        )

    def ask(self, now: float = 1.0, **changes) -> list:
        return self.end.receive(self.initiator.write(encode_payload(message1(**changes))), now)

    def answer(self):
        (message2,) = self.end.take_outgoing()
        answer = decode_message2(self.initiator.read(message2))
        send, receive = self.initiator.split()
        self.sealer, self.opener = Sealer(send), Opener(receive)
        return answer

    def open(self, resume="new", lineage=LINEAGE, output_position=0, **changes) -> list:
        self.end.paired(0.0)
        self.ask(**changes)
        self.end.accept(resume, lineage, output_position, 1.0)
        self.answer()
        return self.say(records.Ack(output_position))

    def say(self, *said: records.Record, now: float = 2.0) -> list:
        return [event for record in said for event in self.end.receive(self.sealer.seal(record), now)]

    def hear(self) -> list[records.Record | None]:
        return [self.opener.open(message) for message in self.end.take_outgoing()]


@pytest.fixture
def peer(make_world) -> Peer:
    """A peer whose channel with the host is open and whose first ACK was answered."""
    peer = Peer(make_world())
    peer.open()
    assert peer.hear() == [records.Ack(0)]
    return peer


def test_an_offer_names_the_key_of_the_device(make_world):
    peer = Peer(make_world())
    peer.end.paired(0.0)
    assert peer.ask(rows=50) == [Offered(message1(rows=50), peer.key.public_key().public_bytes_raw())]


def test_only_the_first_ack_opens(make_world):
    peer = Peer(make_world())
    peer.end.paired(0.0)
    peer.ask(columns=132, rows=43)
    peer.end.accept("new", LINEAGE, 500, 1.0)
    assert peer.answer() == Accepted(resume="new", lineage=LINEAGE, output_position=500, input_received=0)
    assert not peer.end.open
    assert (peer.end.lineage, peer.end.output_position, peer.end.output_credit) == (None, 0, 0)
    assert peer.end.take_outgoing() == []
    assert peer.say(records.Ack(500)) == [Opened(132, 43, "xterm")]
    assert peer.end.open
    assert (peer.end.lineage, peer.end.output_position, peer.end.acknowledged) == (LINEAGE, 500, 500)
    assert peer.hear() == [records.Ack(0)]


@pytest.mark.parametrize("first", [records.Data(b"x"), records.Ack(1), records.Resize(80, 24), records.Ping()])
def test_any_other_first_record_changes_nothing(make_world, first):
    peer = Peer(make_world())
    peer.end.paired(0.0)
    peer.ask()
    peer.end.accept("new", LINEAGE, 0, 1.0)
    peer.answer()
    with pytest.raises(ChannelError):
        peer.say(first)
    assert (peer.end.lineage, peer.end.open) == (None, False)


def test_a_refusal_is_the_last_word(make_world):
    peer = Peer(make_world(Limits(handshake_timeout=7)))
    peer.end.paired(0.0)
    peer.ask()
    peer.end.refuse("token_replayed")
    assert peer.answer() == Refused(code="token_replayed")
    assert peer.end.receive(b"anything", 1.0) == []
    assert peer.end.deadline() == 7
    peer.end.unpaired()
    assert peer.end.deadline() is None


def test_the_handshake_has_a_deadline_until_the_channel_is_open(make_world):
    peer = Peer(make_world(Limits(handshake_timeout=5)))
    assert peer.end.deadline() is None
    peer.end.paired(100.0)
    assert peer.end.deadline() == 105
    peer.ask(now=101.0)
    peer.end.accept("new", LINEAGE, 0, 1.0)
    assert peer.end.deadline() == 105
    peer.answer()
    late = peer.sealer.seal(records.Ack(0))
    with pytest.raises(ChannelError, match="too long"):
        peer.end.receive(late, 105.5)
    assert peer.end.deadline() is None
    assert peer.end.receive(late, 105.6) == []


def test_an_open_channel_has_no_deadline(peer):
    assert peer.end.deadline() is None


def test_a_device_speaks_in_turn(make_world):
    peer = Peer(make_world())
    with pytest.raises(ChannelError, match="asked for"):
        peer.ask()
    again = Peer(peer.world)
    again.end.paired(0.0)
    again.ask()
    with pytest.raises(ChannelError, match="asked for"):
        again.end.receive(b"too early", 1.0)
    with pytest.raises(LocalError):
        again.end.accept("new", LINEAGE, 0, 1.0)


@pytest.mark.parametrize("bad", [b"", bytes(96), bytes(200)])
def test_a_message_1_that_does_not_open_fails_once(make_world, bad):
    peer = Peer(make_world())
    peer.end.paired(0.0)
    with pytest.raises(ChannelError):
        peer.end.receive(bad, 1.0)
    assert peer.ask() == []


def test_a_payload_that_is_none_fails(make_world):
    peer = Peer(make_world())
    peer.end.paired(0.0)
    with pytest.raises(ChannelError):
        peer.end.receive(peer.initiator.write(b"{}"), 1.0)


def test_sending_needs_an_open_channel(make_world):
    end = make_world().host.end
    for call in (
        lambda: end.output(b"x", 2.0),
        lambda: end.exit(0),
        lambda: end.notice("hello"),
        lambda: end.repaint(b""),
        lambda: end.refuse("token_invalid"),
        lambda: end.accept("new", LINEAGE, 0, 1.0),
    ):
        with pytest.raises(LocalError):
            call()
    end.output(b"", 2.0)


@pytest.mark.parametrize(
    ("resume", "lineage", "position"),
    [
        ("new", LINEAGE, 0),
        ("new", b"short", 0),
        ("repaint", b"another lineage!", 0),
        ("exact", LINEAGE, 1),
    ],
)
def test_an_answer_that_makes_no_sense_is_our_own_fault(peer, resume, lineage, position):
    again = Peer(peer.world)
    again.end.paired(0.0)
    again.ask(lineage=LINEAGE)
    with pytest.raises(LocalError):
        again.end.accept(resume, lineage, position, 1.0)
    again.end.accept("exact", LINEAGE, 0, 1.0)


def test_what_the_device_says(peer):
    assert peer.say(records.Data(b"ls\r"), records.Resize(1, 1000), records.Ping(), records.Ping(), records.Ack(0)) == [
        Input(b"ls\r"),
        Resized(1, 1000),
        Pinged(),
        Pinged(),
        Acknowledged(0),
    ]
    peer.end.written(1)
    peer.end.written(2)
    assert peer.hear() == [records.Ack(3), records.Pong()]
    peer.end.written(0)
    assert peer.hear() == []


@pytest.mark.parametrize("size", [(0, 24), (80, 0), (1001, 24), (80, 1001)])
def test_a_bad_size_is_answered_with_a_notice_and_ignored(peer, size):
    assert peer.say(records.Resize(*size)) == []
    (notice,) = peer.hear()
    assert isinstance(notice, records.Notice)
    assert peer.end.open


def test_a_peer_that_does_not_read_is_owed_one_answer_of_each_kind(peer):
    for _ in range(2_000):
        peer.say(records.Ping(), records.Resize(0, 0), records.Data(b"x"))
        peer.end.written(1)
    ack, pong, notice = peer.hear()
    assert (ack, pong) == (records.Ack(2_000), records.Pong())
    assert isinstance(notice, records.Notice)
    assert peer.hear() == []


def test_a_repaint_has_a_bound(peer):
    peer.end.repaint(bytes(REPAINT_TOTAL_BYTES))
    assert sum(len(each.data) for each in peer.hear() if isinstance(each, records.Repaint)) == REPAINT_TOTAL_BYTES
    with pytest.raises(LocalError):
        peer.end.repaint(bytes(REPAINT_TOTAL_BYTES + 1))


@pytest.mark.parametrize(
    "said",
    [records.Pong(), records.Exit(0), records.Repaint(b"", last=True), records.Notice("x"), records.Ack(1)],
)
def test_what_is_not_allowed_fails_the_channel(peer, said):
    with pytest.raises(ChannelError):
        peer.say(said)
    assert not peer.end.open
    assert peer.say(records.Data(b"x")) == []
    assert peer.end.take_outgoing() == []


def test_an_unknown_record_with_the_high_bit_changes_nothing(peer):
    assert peer.end.receive(peer.sealer._cipher.encrypt(b"\xff"), 2.0) == []
    assert peer.say(records.Data(b"x")) == [Input(b"x")]


def test_input_beyond_the_window_fails_the_channel(make_world):
    peer = Peer(make_world(Limits(input_window=10)))
    peer.open()
    peer.say(records.Data(bytes(10)))
    peer.end.written(4)
    peer.say(records.Data(bytes(4)))
    with pytest.raises(ChannelError):
        peer.say(records.Data(b"x"))


def test_output_keeps_to_its_window(make_world):
    peer = Peer(make_world(Limits(output_window=200_000, output_window_min=200_000, output_window_max=200_000)))
    peer.open(output_position=50)
    peer.hear()
    peer.end.output(bytes(150_000), 2.0)
    assert (peer.end.output_credit, peer.end.output_position) == (50_000, 150_050)
    with pytest.raises(LocalError):
        peer.end.output(bytes(50_001), 2.0)
    assert [len(record.data) for record in peer.hear()] == [25_000] * 6
    assert peer.say(records.Ack(100_050)) == [Acknowledged(100_050)]
    assert (peer.end.output_credit, peer.end.acknowledged) == (150_000, 100_050)


def test_a_repaint_is_cut_into_pieces_and_needs_no_window(make_world):
    peer = Peer(make_world(Limits(output_window=0, output_window_min=0)))
    peer.open()
    peer.hear()
    peer.end.repaint(bytes(100_000))
    peer.end.repaint(b"")
    assert [(len(record.data), record.last) for record in peer.hear()] == [(65470, False), (34530, True), (0, True)]
    assert peer.end.output_position == 0


def test_answers_overtake_output(peer):
    """What the device waits for does not stand behind a window of output."""
    peer.say(records.Data(b"abc"), records.Ping())
    peer.end.written(3)
    peer.end.output(b"long", 2.0)
    assert peer.hear() == [records.Ack(3), records.Pong(), records.Data(b"long")]


def test_the_window_follows_what_the_device_takes_and_starts_over_on_every_channel(make_world):
    """A second for the handshake, then a device that takes 32 KiB a second."""
    peer = Peer(make_world())
    peer.open()
    peer.end.output(bytes(256 * 1024), now=10.0)
    assert peer.end.output_credit == 0
    peer.say(records.Ack(32 * 1024), now=11.0)
    peer.say(records.Ack(256 * 1024), now=18.0)
    assert peer.end.output_credit < 64 * 1024
    Peer(peer.world).open("exact", output_position=256 * 1024, output_processed=256 * 1024)
    assert peer.end.output_credit == 256 * 1024


def test_a_repaint_takes_the_place_of_output_at_first(make_world):
    """Keys wait behind both, so both together are one window."""
    peer = Peer(make_world())
    peer.open()
    peer.end.repaint(bytes(100_000))
    assert peer.end.output_credit == 256 * 1024 - 100_000
    peer.end.repaint(bytes(200_000))
    assert peer.end.output_credit == 16 * 1024


def test_exit_comes_behind_all_output_and_is_the_end_of_it(make_world):
    peer = Peer(make_world(Limits(output_window=4, output_window_min=4)))
    peer.open()
    peer.hear()
    peer.end.output(b"last", 2.0)
    peer.end.exit(130)
    peer.end.notice("the program has ended")
    letters = [records.Data(each) for each in (b"l", b"a", b"s", b"t")]
    assert peer.hear() == [*letters, records.Exit(130), records.Notice("the program has ended")]
    assert (peer.end.output_position, peer.end.output_credit) == (5, 0)
    for call in (lambda: peer.end.output(b"x", 2.0), lambda: peer.end.exit(0), lambda: peer.end.repaint(b"")):
        with pytest.raises(LocalError):
            call()
    peer.say(records.Ack(4))
    assert not peer.end.exit_acknowledged
    assert peer.end.output_credit == 0
    peer.say(records.Ack(5))
    assert peer.end.exit_acknowledged


def test_a_notice_is_cut_at_a_character_border(peer):
    peer.end.notice("ü" * records.NOTICE_BYTES)
    assert peer.hear() == [records.Notice("ü" * (records.NOTICE_BYTES // 2))]


def test_the_best_resume(peer):
    end = peer.end
    peer.say(records.Data(b"abc"))
    end.output(bytes(100), 2.0)
    assert end.resume_of(message1(), 0) == "new"
    assert end.resume_of(message1(lineage=b"another lineage!"), 0) == "new"
    known = {"lineage": LINEAGE, "output_processed": 50, "input_sent": 3}
    assert end.resume_of(message1(**known | {"input_sent": 2}), 0) == "new"
    # No output behind the repaint was acknowledged yet, so the repaint may be lost.
    assert end.resume_of(message1(**known), 0) == "repaint"
    peer.say(records.Ack(40))
    assert end.resume_of(message1(**known), 50) == "exact"
    assert end.resume_of(message1(**known), 51) == "repaint"
    assert end.resume_of(message1(**known | {"output_processed": 39}), 0) == "repaint"
    assert end.resume_of(message1(**known | {"output_processed": 101}), 0) == "repaint"


def test_a_host_without_a_lineage_starts_one(make_world):
    assert make_world().host.end.resume_of(message1(), 0) == "new"


def test_an_exact_resume_says_what_was_received(peer):
    peer.say(records.Data(b"abc"), records.Data(b"de"))
    peer.end.written(1)
    peer.end.output(bytes(10), 2.0)
    again = Peer(peer.world)
    again.end.paired(0.0)
    again.ask(lineage=LINEAGE, output_processed=6, input_sent=9)
    again.end.accept("exact", LINEAGE, 6, 1.0)
    assert again.answer().input_received == 5
    again.say(records.Ack(6))
    assert (again.end.output_position, again.end.acknowledged) == (6, 6)
    assert again.hear() == [records.Ack(1)]
    assert again.say(records.Data(b"fghi")) == [Input(b"fghi")]


def test_an_exit_that_a_repaint_covers_is_not_acknowledged(peer):
    peer.end.exit(0)
    peer.say(records.Ack(1))
    assert peer.end.exit_acknowledged
    Peer(peer.world).open("repaint", output_position=5)
    assert not peer.end.exit_acknowledged
