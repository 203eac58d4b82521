"""The devices' side of a session, played with a real device end and without any socket."""

from __future__ import annotations

import asyncio
import random
import time
import uuid

import pyghostty
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_host.conversation import Conversation
from bothy_host.emulated import EmulatedScreen
from bothy_host.gate import Order
from bothy_host.tail import TailScreen
from bothy_wire.channel import DeviceEnd, Limits
from bothy_wire.channel.device_events import Exited, InputAcknowledged, Notice, Opened, Output, Pong, Refusal, Repaint


class Heard:
    """The session."""

    def __init__(self) -> None:
        self.words: list[object] = []
        self.typed_bytes = b""
        self.settled = 0

    def opened(self, columns: int, rows: int, term: str, *, fresh: bool) -> None:
        self.words.append(("opened", columns, rows, term, fresh))

    def typed(self, data: bytes) -> None:
        self.typed_bytes += data

    def resized(self, columns: int, rows: int) -> None:
        self.words.append(("resized", columns, rows))

    def acknowledged(self) -> None:
        self.words.append("acknowledged")

    def refused(self) -> None:
        self.words.append("refused")

    def devices_read(self, admitted: object) -> None:
        self.words.append("devices read")

    def settle(self) -> None:
        self.settled += 1


class Play:
    """A conversation and a device that hear each other when the test says so."""

    def __init__(self, machine) -> None:
        self.machine = machine
        machine.host.tokens.take_keys(machine.server.jwks())
        self.order = Order(uuid.uuid4(), "/path", "shell", "alex")
        self.heard = Heard()
        self.talk = Conversation(machine.host, self.order, self.heard)
        self.key = X25519PrivateKey.generate()
        self.device = self.another()

    def another(self) -> DeviceEnd:
        return DeviceEnd(
            channel_key=self.key,
            host_channel_key=self.machine.channel_public,
            session_id=self.order.session_id,
            host_id=self.machine.server.host_id,
            profile="shell",
            session_user="alex",
            term="xterm",
            limits=Limits(),
        )

    def token(self, **changed: object) -> str:
        public = self.key.public_key().public_bytes_raw()
        return self.machine.server.token(self.order.session_id, public, session_user="alex", **changed)

    def ask(self, **changed: object) -> None:
        """Pair and bring message 1."""
        before = set(self.talk._awaited)
        self.talk.paired()
        self.device.pair(self.token(**changed), 80, 24, time.monotonic())
        for message in self.device.take_outgoing():
            self.talk.message(message)
        self._asked = self.talk._awaited - before

    def leave(self) -> None:
        """The device goes, and what comes next is another one."""
        self.talk.unpaired()
        self.key = X25519PrivateKey.generate()
        self.device = self.another()

    async def judged(self) -> None:
        """Whether the device may enter is decided."""
        await asyncio.gather(*self._asked)

    async def answered(self) -> None:
        """All that the conversation waits for came."""
        while self.talk._awaited:
            await asyncio.gather(*self.talk._awaited)
            await asyncio.sleep(0)  # they are forgotten behind their end

    def pass_on(self) -> list[object]:
        """Everything that both have to say; what the device heard."""
        heard: list[object] = []
        moved = True
        while moved:
            to_device = self.talk.take_outgoing()
            events = [event for each in to_device for event in self.device.receive(each, time.monotonic())]
            heard += [event for event in events if not isinstance(event, InputAcknowledged)]
            to_host = self.device.take_outgoing()
            for message in to_host:
                self.talk.message(message)
            moved = bool(to_device or to_host)
        return heard

    async def open(self) -> list[object]:
        self.ask()
        await self.answered()
        heard = self.pass_on()
        await self.answered()
        return heard + self.pass_on()


@pytest.fixture
async def play(prepared):
    made = Play(prepared)
    yield made
    await made.talk.stop()


async def test_a_device_comes_in_and_types(play):
    opened, repaint = await play.open()
    assert (opened, repaint) == (Opened("new", 0, 0), Repaint(b"", True))
    assert play.heard.words == [("opened", 80, 24, "xterm", True)]
    assert play.talk.device_key == play.key.public_key().public_bytes_raw()
    play.device.write(b"ls\n")
    play.device.resize(100, 30)
    play.pass_on()
    assert play.heard.typed_bytes == b"ls\n"
    assert play.heard.words[1:] == [("resized", 100, 30)]


async def test_a_device_that_asks_without_reading_costs_one_answer_of_each_kind(play):
    await play.open()
    for _ in range(2_000):
        play.device.ping(time.monotonic())
        play.device.resize(0, 0)
        play.device.write(b"x")
        for message in play.device.take_outgoing():
            play.talk.message(message)
        play.talk.written(1)
        play.device._state.pinged_at = None  # a device that does not wait for the answer
    assert len(play.talk.take_outgoing()) == 3


async def test_output_and_exit_follow_each_other(play):
    await play.open()
    play.talk.printed(b"bye")
    play.talk.exited(3)
    assert play.pass_on() == [Output(b"bye"), Exited(3)]
    assert not play.talk.exit_acknowledged
    play.device.processed(4)
    play.pass_on()
    assert play.talk.exit_acknowledged


async def test_who_comes_again_without_the_exit_gets_it_again(play):
    await play.open()
    play.talk.exited(3)
    play.pass_on()
    play.talk.unpaired()
    play.device.unpaired()
    assert Exited(3) in await play.open()


async def test_a_wrong_token_is_refused_and_told(play):
    play.ask(exp=1)
    await play.answered()
    assert play.pass_on() == [Refusal("token_expired")]
    assert play.heard.words == ["refused"]


async def test_who_leaves_while_it_is_judged_hears_nothing(play):
    for changed in ({}, {"exp": 1}):
        play.ask(**changed)
        play.talk.unpaired()
        await play.answered()
        assert play.talk.take_outgoing() == []
        assert not play.talk.open


async def test_a_session_that_ended_lets_nobody_in(play):
    play.talk.close()
    play.ask()
    await play.answered()
    assert play.pass_on() == [Refusal("session_unknown")]


async def test_a_failed_channel_hears_nothing_more_until_the_next_pairing(play):
    await play.open()
    play.talk.message(b"no record")
    assert not play.talk.open
    play.talk.message(b"no record either")
    now = play.talk.deadline()
    assert now is not None
    assert play.talk.overdue(now)
    play.talk.unpaired()
    assert not play.talk.overdue(now + 1000)
    play.device.unpaired()
    assert (await play.open())[0].resume == "repaint"


async def test_a_handshake_that_does_not_come_is_overdue(play):
    play.talk.paired()
    due = play.talk.deadline()
    assert not play.talk.overdue(due - 1)
    assert play.talk.overdue(due)


async def test_a_notice_reaches_who_is_there_and_nobody_else(play):
    play.talk.notice("nobody hears")
    await play.open()
    play.talk.notice("hello")
    assert play.pass_on() == [Notice("hello")]


async def test_a_ping_is_answered(play):
    await play.open()
    play.device.ping(time.monotonic())
    (pong,) = play.pass_on()
    assert isinstance(pong, Pong)


async def test_only_an_acknowledgement_that_moves_is_told(play):
    await play.open()
    play.talk.printed(b"bye")
    play.pass_on()
    told = play.heard.words.count("acknowledged")
    for _ in range(3):
        play.device.flush()
        play.device._state.ack_due = True
        play.pass_on()
    assert play.heard.words.count("acknowledged") == told
    play.device.processed(3)
    play.pass_on()
    assert play.heard.words.count("acknowledged") == told + 1


class Painter:
    """A screen that keeps what it was fed, and is painted when the test says so; or at once, as ``kind`` paints."""

    behind = False

    def __init__(self, kind: type[EmulatedScreen | TailScreen] = TailScreen, *, at_once: bool = False) -> None:
        self.painted = asyncio.Event()
        if at_once:
            self.painted.set()
        self.closed = False
        self._screen = kind(64 * 1024)
        self.feed, self.resize = self._screen.feed, self._screen.resize

    async def repaint(self) -> bytes:
        picture = self._screen.repaint()
        await self.painted.wait()
        return picture

    def close(self) -> None:
        self.closed = True


@pytest.fixture
async def slow(prepared):
    """A play whose second device waits for its screen."""
    screen = Painter(at_once=True)
    prepared.host.make_screen = lambda limit: screen
    play = Play(prepared)
    play.screen = screen
    await play.open()
    play.talk.printed(b"before")
    play.pass_on()
    play.device.processed(6)
    play.pass_on()
    play.leave()
    screen.painted.clear()
    yield play
    await play.talk.stop()
    assert screen.closed


async def test_who_waits_for_the_screen_types_and_is_shown_all_in_order(slow):
    slow.ask()
    await slow.judged()
    (opened,) = slow.pass_on()
    assert opened.resume == "new"
    slow.device.write(b"ls\n")
    slow.device.resize(100, 30)
    assert slow.pass_on() == []
    assert slow.heard.typed_bytes == b"ls\n"
    assert slow.talk.wants() == 0, "the program waits"
    slow.talk.printed(b"the last of a program")
    slow.talk.exited(3)
    assert slow.pass_on() == [], "nothing overtakes the screen"
    slow.screen.painted.set()
    await slow.answered()
    assert slow.pass_on() == [Repaint(b"\x1bcbefore", True), Output(b"the last of a program"), Exited(3)]


async def test_who_leaves_while_the_screen_is_painted_takes_nothing_from_the_next(slow):
    slow.ask()
    await slow.judged()
    slow.pass_on()
    slow.leave()
    slow.talk.printed(b" and between")
    slow.ask()
    await slow.judged()
    slow.pass_on()
    slow.screen.painted.set()
    await slow.answered()
    assert slow.pass_on() == [Repaint(b"\x1bcbefore and between", True)]
    slow.talk.printed(b" and after")
    assert slow.pass_on() == [Output(b" and after")]


async def test_a_channel_that_fails_while_the_screen_is_painted_is_shown_nothing(slow):
    slow.ask()
    await slow.judged()
    slow.pass_on()
    slow.talk.message(b"no record")
    slow.screen.painted.set()
    await slow.answered()
    assert slow.talk.take_outgoing() == []


async def test_a_session_that_ends_while_the_screen_is_painted_waits_for_nothing(slow):
    slow.ask()
    await slow.judged()
    slow.pass_on()
    slow.talk.close()
    await slow.talk.stop()
    assert slow.talk._awaited == set()


class Terminal:
    """What a device shows its output on. It answers like a real one, and what it answers is typed."""

    def __init__(self) -> None:
        self.answers = b""
        self._terminal = pyghostty.Terminal(80, 24)
        self._terminal.on_reply(self._reply)

    def show(self, output: bytes) -> bytes:
        """Returns what is typed into the shell because of it."""
        self.answers = b""
        self._terminal.feed(output)
        return self.answers

    def _reply(self, answer: bytes) -> None:
        self.answers += answer


QUESTIONS = (
    b"\x1b[c",
    b"\x1b[6n",
    b"\x1b]11;?\x07",
    b"\x1b[?2004$p",
    b"\x05",
    b"\x1b[>q",
    b"\x1bP$qm\x1b\\",
    b"\x1b[?2048h",
)
PRINTS = (
    *QUESTIONS,
    b"text\r\n",
    b"\x1b[31m",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    "€".encode(),
    b"z" * 500,
    b"\x1b[?2048l",
)


def test_the_terminal_of_these_tests_answers():
    assert all(Terminal().show(question) for question in (b"\x1b[c", b"\x1b[6n", b"\x1b[?2004$p"))


@pytest.mark.parametrize("make", [EmulatedScreen, TailScreen])
@pytest.mark.parametrize("seed", range(20))
async def test_no_replay_types_into_the_shell_and_nothing_is_typed_twice(prepared, make, seed):
    prepared.host.make_screen = lambda limit: Painter(make, at_once=True)
    play, chance = Play(prepared), random.Random(seed)
    typed, terminal, written = b"", Terminal(), 0

    async def attach(*, anew: bool) -> None:
        nonlocal terminal
        play.talk.unpaired()
        play.device.unpaired()
        if anew:
            play.key, terminal = X25519PrivateKey.generate(), Terminal()
            play.device = play.another()
        take(await play.open())

    def take(events: list[object]) -> None:
        nonlocal typed
        for event in events:
            match event:
                case Repaint(data):
                    assert terminal.show(data) == b"", "a replay is answered"
                case Output(data):
                    answer = terminal.show(data)
                    typed += answer
                    play.device.write(answer)
                    play.device.processed(len(data))

    await attach(anew=True)
    for number in range(60):
        match chance.choice(["print", "print", "type", "cut", "cut mid-way", "another"]):
            case "print":
                play.talk.printed(b"".join(chance.choices(PRINTS, k=chance.randrange(1, 30))))
                take(play.pass_on())
            case "type":
                word = b"<%d>" % number
                typed += word
                play.device.write(word)
                take(play.pass_on())
            case "cut":
                play.talk.printed(b"".join(chance.choices(PRINTS, k=40)))
                await attach(anew=False)
            case "cut mid-way":
                play.talk.printed(b"".join(chance.choices(PRINTS, k=40)))
                play.talk.take_outgoing()  # on their way, and lost
                await attach(anew=False)
            case "another":
                await attach(anew=True)
        take(play.pass_on())
        play.talk.written(len(play.heard.typed_bytes) - written)
        written = len(play.heard.typed_bytes)
        take(play.pass_on())
        assert play.device.pending_input == 0
    assert play.heard.typed_bytes == typed
    await play.talk.stop()
