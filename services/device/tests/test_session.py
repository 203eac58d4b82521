"""The device session against a real host end, with the time as an argument."""

import uuid

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device import reconnect
from bothy_device.events import (
    Accepted,
    Attach,
    Attached,
    Begin,
    Bell,
    Closed,
    Dial,
    Discard,
    HangUp,
    Leave,
    Quit,
    Read,
    Received,
    Refused,
    Resized,
    Say,
    Show,
    Status,
    Tick,
    Typed,
    Unreached,
    Woke,
    Written,
)
from bothy_device.session import Session
from bothy_device.waiting import Limits
from bothy_device.way import Way
from bothy_wire.backoff import Backoff
from bothy_wire.channel import flow
from bothy_wire.channel.device_end import DeviceEnd
from bothy_wire.channel.host_end import HostEnd, Input, Offered
from bothy_wire.channel.host_end import Opened as HostOpened
from bothy_wire.channel.host_end import Resized as HostResized
from bothy_wire.close_codes import CloseCode, retry_of, text_of
from bothy_wire.frames import SideAccepted, SidePaired, SideReady, SideUnpaired

LIMITS = Limits(paste_bytes=100_000, input_buffer_bytes=10, fail_grace=1.0)
LINEAGE = b"l" * 16


class World:
    """Both ends; messages travel when the test says so."""

    def __init__(
        self, *, escape: bytes | None = b"~", greeting: str | None = None, once: bool = False, accepted: bool = True
    ) -> None:
        self.now = 100.0
        self.session_id, host_id = uuid.uuid4(), uuid.uuid4()
        host_key = X25519PrivateKey.generate()
        self.host = HostEnd(channel_key=host_key, session_id=self.session_id, host_id=host_id, limits=flow.Limits())
        end = DeviceEnd(
            channel_key=X25519PrivateKey.generate(),
            host_channel_key=host_key.public_key().public_bytes_raw(),
            session_id=self.session_id,
            host_id=host_id,
            profile="shell",
            session_user="alex",
            term="xterm",
            limits=flow.Limits(),
        )
        self.session = Session(
            end,
            session_id=self.session_id,
            host_name="lab-1",
            escape=escape,
            size=Resized(132, 43),
            limits=LIMITS,
            now=self.now,
            way=Way(
                reconnect.start(self.now, life=60.0, once=once),
                backoff=Backoff(),
                chance=lambda: 0.5,
                session_id=self.session_id,
                host="lab-1",
                person=escape is not None,
            ),
            greeting=greeting,
        )
        if accepted:
            self.session.handle(Accepted(), self.now)
        self.typed = b""
        self.frames = []
        self.host_saw = []
        self.reads_input = True

    def feed(self, event):
        """The effects; the host gets the channel messages."""
        effects = self.session.handle(event, self.now)
        for item in self.session.take_outgoing():
            if isinstance(item, bytes):
                self._host_gets(item)
            else:
                self.frames.append(item)
        return effects

    def _host_gets(self, message):
        for event in self.host.receive(message, self.now):
            self.host_saw.append(event)
            match event:
                case Offered(message1):
                    known = message1.lineage == LINEAGE
                    self.host.accept("repaint" if known else "new", LINEAGE, self.host.output_position, self.now)
                case Input(data):
                    self.typed += data
                    if self.reads_input:
                        self.host.written(len(data))

    def deliver(self):
        """What the host has to say, and what follows from it."""
        effects = []
        while messages := self.host.take_outgoing():
            for message in messages:
                effects += self.feed(Received(message))
        return effects

    def pair(self):
        self.host.paired(self.now)
        return self.feed(Received(SidePaired(session_token="token"))) + self.deliver()

    def unpair(self):
        self.host.unpaired()
        return self.feed(Received(SideUnpaired()))

    def later(self, seconds):
        self.now += seconds
        return self.feed(Tick())


@pytest.fixture
def world():
    made = World()
    made.pair()
    return made


def test_the_terminal_begins_when_the_channel_is_open():
    world = World(greeting="pinned")
    assert world.pair() == [Begin()]
    world.host.repaint(b"$ ")
    assert world.deliver() == [Show(b"$ "), Say("pinned")]
    world.feed(Written(2))
    world.host.repaint(b"$ ")
    assert world.deliver() == [Show(b"$ ")]


def test_an_empty_repaint_clears_nothing_that_was_said():
    world = World(greeting="pinned")
    world.pair()
    world.host.repaint(b"")
    assert world.deliver() == []
    world.host.repaint(b"$ ")
    assert world.deliver() == [Show(b"$ ")]


def test_patience_is_told_once():
    world = World()
    assert world.session.deadline() == 102.0
    assert world.later(2.0) == [Say("waiting for lab-1; Ctrl-C gives up")]
    assert world.session.deadline() is None


def test_a_handshake_that_nobody_answers_ends_in_4107():
    world = World()
    world.session.handle(Received(SidePaired(session_token="token")), world.now)
    assert len(world.session.take_outgoing()) == 1
    world.later(2.0)
    assert world.session.deadline() == 110.0
    (leave,) = world.later(8.0)
    assert (leave.status, leave.close) == (255, 4107)
    assert leave.message == "the terminal could not be reached: the encrypted channel failed; try again"


def test_output_is_acknowledged_when_the_terminal_took_it(world):
    world.host.output(b"x" * 1000, world.now)
    assert world.deliver() == [Show(b"x" * 1000)]
    assert world.host.acknowledged == 0
    world.feed(Written(249))
    assert world.host.acknowledged == 0
    world.feed(Written(1))
    assert world.host.acknowledged == 250  # a quarter
    world.feed(Written(750))
    assert world.host.acknowledged == 1000


def test_the_exit_waits_for_the_terminal_and_is_acknowledged(world):
    world.host.output(b"bye", world.now)
    world.host.exit(3)
    assert world.deliver() == [Show(b"bye")]
    assert world.feed(Closed(4100, "process_exited")) == []
    assert world.feed(Written(3)) == [Leave(3)]


def test_the_exit_is_acknowledged_while_connected(world):
    world.host.output(b"bye", world.now)
    world.host.exit(3)
    world.deliver()
    assert world.feed(Written(3)) == [Leave(3)]
    assert world.host.exit_acknowledged
    assert world.feed(Typed(b"late")) == []


def test_a_close_is_told_behind_the_output(world):
    world.host.output(b"last words", world.now)
    world.deliver()
    assert world.feed(Closed(4100, "revoked")) == []
    (leave,) = world.feed(Written(10))
    assert leave == Leave(
        255,
        "closed by the relay: revoked (the right has ended, or the device or the account was taken away)",
        reason="revoked",
    )


def test_unpaired_is_answered_once_and_typed_keys_are_kept(world):
    assert world.unpair() == []
    assert world.frames == [SideReady()]
    assert world.session.deadline() == world.now + 1.0
    assert world.later(1.0) == [Status("lab-1 is away; waiting; Ctrl-C gives up")]
    assert world.feed(Typed(b"12345")) == [Status("lab-1 is away; waiting; 5 keys waiting, Ctrl-C drops them")]
    assert world.feed(Typed(b"6789012")) == [Bell()]
    assert world.feed(Typed(b"67890")) == []
    assert world.later(1.0) == [Status("lab-1 is away; waiting; 10 keys waiting, Ctrl-C drops them")]
    assert world.typed == b""
    assert world.pair() == [Status("reconnected after 2 s")]
    assert world.typed == b"1234567890"
    assert world.session.deadline() == world.now + 3.0
    assert world.later(3.0) == [Status(None)]


def test_a_resize_between_pairings_is_the_size_of_the_next(world):
    world.unpair()
    world.feed(Resized(101, 37))
    world.pair()
    assert (world.host_saw[-1].columns, world.host_saw[-1].rows) == (101, 37)


def test_a_resize_during_the_handshake_follows_it():
    world = World()
    world.host.paired(world.now)
    world.feed(Received(SidePaired(session_token="token")))
    world.feed(Resized(101, 37))
    world.deliver()
    assert world.host_saw[-1] == HostResized(101, 37)


def test_an_absurd_size_is_brought_into_bounds(world):
    world.feed(Resized(70000, 0))
    assert world.host_saw[-1] == HostResized(1000, 24)


def test_a_broken_record_waits_for_the_relays_word():
    world = World()
    world.pair()
    assert world.feed(Received(b"\x00" * 100)) == []
    assert world.session.deadline() == world.now + LIMITS.fail_grace
    assert world.feed(Received(b"\x00" * 100)) == []
    world.unpair()
    assert world.frames == [SideReady()]
    assert world.pair() == []
    assert world.session.deadline() is None


def test_a_broken_record_without_it_closes_with_4107_and_attaches(world):
    world.feed(Received(b"\x00" * 100))
    assert world.later(1.0) == [HangUp(4107)]
    assert world.session.deadline() == world.now + 0.6
    assert world.later(0.6) == [Attach(take=False)]


@pytest.mark.parametrize("item", [b"binary", SideUnpaired(), SideAccepted()])
def test_what_is_not_allowed_while_unpaired_is_4105(item):
    (leave,) = World().feed(Received(item))
    assert (leave.status, leave.close) == (255, 4105)


def test_a_second_pairing_without_an_unpairing_is_4105(world):
    (leave,) = world.feed(Received(SidePaired(session_token="token")))
    assert leave.close == 4105


def test_a_pairing_without_a_token_is_4105():
    (leave,) = World().feed(Received(SidePaired()))
    assert leave.close == 4105


def test_input_that_waits_is_told_after_two_seconds(world):
    world.reads_input = False
    assert world.feed(Typed(b"x" * 70_000)) == []
    assert world.session.deadline() == 101.0
    assert world.later(1.0) == []
    assert world.session.deadline() == 102.0
    assert world.later(1.0) == [Status("70000 bytes waiting, ~D drops them")]
    assert world.feed(Typed(b"\r~D")) == [Say("4465 bytes dropped")]
    assert world.session.deadline() == 103.0
    assert world.later(1.0) == [Status("65536 bytes waiting, ~D drops them")]
    assert world.session.deadline() is None
    world.host.written(65536)
    assert world.deliver() == [Status(None)]


def test_a_paste_that_is_too_large_stops_the_keyboard(world):
    world.reads_input = False
    assert world.feed(Typed(b"x" * 100_000)) == [Read(on=False)]
    world.later(1.0)
    assert world.later(1.0) == [Status("100000 bytes waiting; keys are read again when a tenth is through")]
    world.host.written(9_000)
    assert world.deliver() == []
    world.host.written(1_000)
    assert Read(on=True) in world.deliver()


def test_an_outage_reads_the_keyboard_again_so_that_escapes_work(world):
    world.reads_input = False
    world.feed(Typed(b"x" * 100_000))
    assert Read(on=True) in world.unpair()
    (leave,) = world.feed(Typed(b"\r~."))[-1:]
    assert leave.status == 0


def test_a_pipe_is_stopped_in_an_outage_and_loses_nothing():
    world = World(escape=None)
    world.pair()
    world.unpair()
    assert world.feed(Typed(b"~." * 10)) == [Read(on=False)]
    assert Read(on=True) in world.pair()
    assert world.typed == b"~." * 10


def test_keys_before_a_leave_are_sent(world):
    assert world.feed(Typed(b"sync\r~.")) == [Leave(0, f"left; the session goes on: bothy attach {world.session_id}")]
    assert world.typed == b"sync\r"


def test_a_refusal_leaves_with_1000():
    world = World()
    world.host.paired(world.now)
    world.session.handle(Received(SidePaired(session_token="token")), world.now)
    for message in world.session.take_outgoing():
        world.host.receive(message, world.now)
    world.host.refuse("session_unknown")
    (leave,) = world.deliver()
    assert leave == Leave(255, "the host does not run this session; bothy sessions lists yours", close=1000)


def test_a_signal_says_how_to_go_on(world):
    assert world.feed(Quit(143, "terminated")) == [
        Leave(143, f"terminated; the session goes on: bothy attach {world.session_id}")
    ]


def test_a_signal_behind_the_exit_promises_nothing(world):
    world.host.output(b"bye", world.now)
    world.host.exit(0)
    world.deliver()
    assert world.feed(Quit(143, "terminated")) == [Leave(143, "terminated")]


def test_a_signal_before_the_terminal_has_nothing_to_go_on():
    assert World().feed(Quit(130, "interrupted")) == [Leave(130, "interrupted")]


def test_a_repaint_stands_for_the_output_that_the_terminal_has_not_taken(world):
    world.host.output(b"old output", world.now)
    world.deliver()
    world.feed(Written(4))
    world.unpair()
    world.pair()
    world.host.repaint(b"x" * 100_000)
    effects = world.deliver()
    assert [type(effect) for effect in effects] == [Discard, Show, Show]
    assert world.feed(Written(6)) == []
    world.feed(Written(100_000))
    world.host.output(b"new", world.now)
    assert world.deliver() == [Show(b"new")]
    world.feed(Written(3))
    assert world.host.acknowledged == world.host.output_position


# ---- reconnecting -------------------------------------------------------------------------------------------------


def dial(world):
    """What the shell does: the connection is there, and the host comes."""
    world.host.unpaired()
    return world.feed(Accepted()) + world.pair()


def test_a_loss_dials_again_with_the_token_and_resumes(world):
    world.feed(Typed(b"be"))
    assert world.feed(Closed(1006, "")) == []
    assert world.session.deadline() == world.now + 0.6
    assert world.feed(Typed(b"tween")) == []
    assert world.later(0.6) == [Dial()]
    assert dial(world) == []
    assert world.typed == b"between"


def test_behind_the_life_of_the_token_it_attaches(world):
    world.now += 60
    world.feed(Closed(1012, ""))
    assert world.later(0.5) == [Attach(take=False)]
    assert world.feed(Attached(world.now + 60)) == [Dial()]


def test_an_abandoned_connection_is_not_heard(world):
    world.feed(Closed(1006, ""))
    for item in (SidePaired(session_token="token"), SideUnpaired(), b"binary", SideAccepted()):
        assert world.feed(Received(item)) == []
    assert world.later(0.6) == [Dial()]


def test_the_line_counts_down_and_the_loss_is_told_with_its_cause(world):
    world.feed(Closed(1006, ""))
    world.later(0.6)
    assert world.later(0.4) == [Status("lost the relay; trying now; Ctrl-C gives up")]
    assert world.feed(Unreached(local=True, text="cannot reach it")) == [
        Status("your network is down; next try in 2 s; Enter tries now, Ctrl-C gives up")
    ]
    assert world.later(1.0) == [Status("your network is down; next try in 1 s; Enter tries now, Ctrl-C gives up")]
    assert world.feed(Typed(b"\r")) == [Dial(), Status("your network is down; trying now; Ctrl-C gives up")]
    assert world.feed(Accepted()) == [Status("your network is down; waiting for lab-1; Ctrl-C gives up")]
    world.host.unpaired()
    assert world.pair() == [Status("reconnected after 2 s")]
    assert world.typed == b""


def shown_outage(world):
    world.feed(Closed(1006, ""))
    world.later(0.6)
    world.later(0.4)


def test_ctrl_c_drops_first_and_then_gives_up(world):
    shown_outage(world)
    world.feed(Typed(b"rm"))
    world.feed(Typed(b"\r"))
    assert world.feed(Typed(b"\x03")) == [Status("lost the relay; trying now; Ctrl-C gives up")]
    assert world.feed(Typed(b"\x03")) == [
        Leave(255, f"lost the relay; the session goes on: bothy attach {world.session_id}")
    ]


def test_keys_before_the_line_are_keys_whatever_they_are(world):
    world.feed(Closed(1006, ""))
    world.feed(Typed(b"\x03"))
    world.feed(Typed(b"\r"))
    assert world.later(0.6) == [Dial()]
    dial(world)
    assert world.typed == b"\x03\r"


def test_enter_behind_waiting_keys_is_theirs_and_tries_now(world):
    shown_outage(world)
    world.feed(Unreached(local=False, text=""))
    world.feed(Typed(b"ls"))
    assert Dial() in world.feed(Typed(b"\r"))
    dial(world)
    assert world.typed == b"ls\r"


@pytest.mark.parametrize(
    ("keys", "lost"),
    [
        (b"~.", ""),
        (b"\r~.", ""),
        (b"x\r~.", " (the last 2 keys may not have arrived)"),
        (b"\r\r~.", ""),
    ],
)
def test_the_escape_leaves_and_tells_of_the_keys(world, keys, lost):
    world.feed(Typed(b"\r"))
    world.deliver()
    shown_outage(world)
    (leave,) = world.feed(Typed(keys))[-1:]
    assert leave == Leave(0, f"left; the session goes on: bothy attach {world.session_id}{lost}")


@pytest.mark.parametrize("code", [code for code in CloseCode if retry_of(code, "stream") == "never" and code != 4103])
def test_a_code_that_says_never_ends_at_once_and_says_why(world, code):
    (leave,) = world.feed(Closed(code, "idle" if code == 4100 else ""))
    assert (leave.status, leave.close) == (255, 1000)
    assert leave.message
    assert (text_of(code) in leave.message) or code == 4100


@pytest.mark.parametrize("code", [code for code in CloseCode if retry_of(code, "stream") != "never"])
def test_every_other_code_leads_back_to_the_terminal(world, code):
    assert world.feed(Closed(code, "")) == []
    (effect,) = [each for each in world.later(3.0) if not isinstance(each, Status)]
    if effect == Attach(take=False):
        (effect,) = [each for each in world.feed(Attached(world.now + 60)) if not isinstance(each, Status)]
    assert effect == Dial()
    dial(world)
    world.feed(Typed(b"on"))
    assert world.typed == b"on"


def test_replaced_asks_and_takes_the_session_back(world):
    assert world.feed(Closed(4103, "")) == [Status("continued on another device; Enter takes it back, Ctrl-C leaves")]
    assert world.session.deadline() is None
    assert world.feed(Typed(b"ls\r")) == [Bell()]
    assert Attach(take=True) in world.feed(Typed(b"\r"))
    assert Dial() in world.feed(Attached(world.now + 60))
    dial(world)
    assert world.typed == b""


def test_replaced_and_left_says_what_it_was(world):
    world.feed(Closed(4103, ""))
    assert world.feed(Typed(b"\x03")) == [
        Leave(255, "the relay closed the connection: the session goes on on another device")
    ]


def test_a_pipe_that_is_replaced_ends():
    world = World(escape=None)
    world.pair()
    (leave,) = world.feed(Closed(4103, ""))
    assert leave.status == 255


def test_a_pipe_keeps_everything_and_says_one_thing():
    world = World(escape=None)
    world.pair()
    world.feed(Closed(1006, ""))
    world.feed(Typed(b"\r"))
    assert world.later(0.6) == [Dial()]
    assert world.later(0.4) == [Status("lost the relay; trying to reconnect")]
    world.feed(Typed(b"\x03"))
    assert world.feed(Unreached(local=False, text="")) == []
    assert world.feed(Typed(b"0123456789")) == [Read(on=False)]
    assert Dial() in world.later(2.0)
    assert Read(on=True) in dial(world)
    assert world.typed == b"\r\x030123456789"


@pytest.mark.parametrize(("code", "words"), [("session_closed", "gone"), ("token_invalid", "who?"), ("", "odd")])
def test_an_attach_that_is_refused_ends_with_the_reason(world, code, words):
    world.feed(Closed(4102, ""))
    assert world.later(0.6) == [Attach(take=False)]
    assert world.feed(Refused(code, words)) == [Leave(255, words)]


def test_a_host_that_is_away_is_waited_for_without_end(world):
    world.feed(Closed(4102, ""))
    for _ in range(50):
        world.later(15.0)
        assert not any(isinstance(each, Leave) for each in world.feed(Refused("host_unavailable", "")))
    assert world.feed(Typed(b"x"))[0].text.startswith("lab-1 is away; next try in ")


def test_a_machine_that_slept_tries_at_once(world):
    world.now += 3600
    assert world.feed(Woke()) == [Attach(take=False)]
    assert world.feed(Unreached(local=True, text="")) == []
    assert world.feed(Woke()) == [Attach(take=False)]


def test_the_size_of_an_outage_stands_before_the_output(world):
    world.feed(Closed(1006, ""))
    world.feed(Resized(90, 30))
    world.later(0.6)
    dial(world)
    opened = next(each for each in reversed(world.host_saw) if isinstance(each, HostOpened))
    assert (opened.columns, opened.rows) == (90, 30)


def test_the_exit_outlives_its_connection(world):
    world.host.output(b"bye", world.now)
    world.host.exit(3)
    world.deliver()
    assert world.feed(Closed(1006, "")) == []
    assert world.feed(Written(3)) == [Leave(3)]


def test_an_end_tells_of_keys_that_nobody_acknowledged(world):
    world.reads_input = False
    world.feed(Typed(b"12345"))
    (leave,) = world.feed(Closed(4100, "idle"))
    assert leave.message.endswith("(the last 5 keys may not have arrived)")


def test_a_refusal_that_a_new_token_heals_hangs_up_and_attaches(world):
    world.feed(Closed(1006, ""))
    world.later(0.6)
    world.host.unpaired()
    world.feed(Accepted())
    world.host.paired(world.now)
    world.session.handle(Received(SidePaired(session_token="token")), world.now)
    for message in world.session.take_outgoing():
        world.host.receive(message, world.now)
    world.host.refuse("token_replayed")
    assert world.deliver() == [HangUp(1000)]
    assert [each for each in world.later(3.0) if not isinstance(each, Status)] == [Attach(take=False)]


def test_before_the_terminal_a_restarting_relay_is_tried_again_while_the_token_lives():
    world = World()
    assert world.feed(Closed(1012, "")) == [Say("the relay restarts; trying again")]
    assert world.later(0.5) == [Dial()]
    world.now += 60
    assert world.feed(Closed(1012, "")) == []
    (leave,) = world.later(2.0)[-1:]
    assert leave == Leave(255, "the terminal could not be reached: the relay node is leaving; try again")


def test_before_the_terminal_an_unreachable_relay_is_an_error_of_the_command():
    world = World(accepted=False)
    assert world.feed(Unreached(local=False, text="cannot reach it")) == [Leave(1, "cannot reach it")]


def test_without_reconnecting_the_first_loss_is_the_end():
    world = World(once=True)
    world.pair()
    assert world.feed(Closed(1006, "")) == [
        Leave(255, f"the connection was lost; the session goes on: bothy attach {world.session_id}")
    ]


def test_a_repaint_clears_the_line_and_it_is_shown_again(world):
    shown_outage(world)
    assert dial(world)[-1] == Status("reconnected after 1 s")
    world.host.repaint(b"\x1bc$ ")
    assert world.deliver() == [Show(b"\x1bc$ "), Status("reconnected after 1 s")]
    assert world.later(3.0) == [Status(None)]


def test_output_that_starts_anew_stands_for_what_the_terminal_has_not_taken(world):
    for _ in range(3):
        world.host.output(b"x" * 1000, world.now)
        world.deliver()
        world.unpair()
        world.pair()
        world.host.output(b"new", world.now)
        assert world.deliver() == [Discard(), Show(b"new")]
        world.feed(Written(1000))
        world.host.output(b"on", world.now)
        assert world.deliver() == [Show(b"on")]
        world.feed(Written(5))
        world.unpair()
        world.pair()
