"""The connector alone, and the real program that loses its relay in every way: the terminal goes on."""

import asyncio
import signal
import sys
import uuid
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bothy_device.connector import Connector, Talk
from bothy_device.events import Accepted, Attached, Closed, Received, Refused, Unreached
from bothy_device.failure import Failure, Unreachable
from bothy_device.settings import Wire
from bothy_device.stream import StreamClosedError
from bothy_wire.close_codes import retry_of

# ---- alone --------------------------------------------------------------------------------------------------------


class Line:
    """A connection that says what the test wants and writes down what is done to it."""

    def __init__(self, log):
        self.log = log
        self.items = asyncio.Queue()
        self.silent = asyncio.Event()

    async def receive(self):
        item = await self.items.get()
        if isinstance(item, Exception):
            raise item
        return item

    async def send(self, item):
        self.log.append(item)

    async def watch(self, interval, grace):
        await self.silent.wait()

    async def close(self, code):
        self.log.append(f"close {code}")

    def abort(self):
        self.log.append("abort")


class Ways:
    """Dials lines; each attempt first does what ``then`` says."""

    def __init__(self):
        self.log, self.lines, self.then, self.events = [], [], None, []
        self.changed = asyncio.Event()

    @asynccontextmanager
    async def dial(self):
        self.log.append("dial")
        if self.then:
            await self.then()
        self.lines.append(Line(self.log))
        try:
            yield self.lines[-1]
        finally:
            self.log.append("gone")

    async def attach(self, *, take):
        self.log.append(f"attach {take}")
        if self.then:
            await self.then()
        return 77.0

    def feed(self, event):
        self.events.append(event)
        self.changed.set()

    async def until(self, event):
        async with asyncio.timeout(20):
            while event not in self.events:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def connector(outgoing=list):
    ways = Ways()
    async with asyncio.TaskGroup() as group:
        made = Connector(ways, Wire(), group=group, feed=ways.feed, outgoing=outgoing)
        yield made, ways
        await made.part(1000)


def failing(error):
    async def fail():
        raise error

    return fail


async def test_a_connection_is_told_heard_and_its_end_is_told():
    async with connector() as (made, ways):
        made.dial()
        await ways.until(Accepted())
        ways.lines[0].items.put_nowait(b"record")
        ways.lines[0].items.put_nowait(StreamClosedError(1012, "leaving"))
        await ways.until(Closed(1012, "leaving"))
    assert ways.events == [Accepted(), Received(b"record"), Closed(1012, "leaving")]
    assert ways.log == ["dial", "gone"]


async def test_a_line_that_is_silent_is_closed():
    async with connector() as (made, ways):
        made.dial()
        await ways.until(Accepted())
        ways.lines[0].silent.set()
        await ways.until(Closed(4009, ""))
    assert ways.log == ["dial", "gone"]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (StreamClosedError(4101, "unknown"), Closed(4101, "unknown")),
        (Unreachable("no way", local=True), Unreached(local=True, text="no way")),
    ],
)
async def test_an_attempt_that_fails_is_told(error, event):
    async with connector() as (made, ways):
        ways.then = failing(error)
        made.dial()
        await ways.until(event)
    assert ways.events == [event]


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (Failure("ended", code="session_closed"), Refused("session_closed", "ended")),
        (Failure("odd"), Refused("", "odd")),
        (Failure("busy", code="rate_limited", retry_after=7), Refused("rate_limited", "busy", 7)),
        (Unreachable("nobody"), Unreached(local=False, text="nobody")),
    ],
)
async def test_an_attach_that_fails_is_told(error, event):
    async with connector() as (made, ways):
        ways.then = failing(error)
        made.attach(take=True)
        await ways.until(event)
    assert (ways.events, ways.log) == ([event], ["attach True"])


async def test_the_old_socket_is_gone_before_the_new_attempt_and_nobody_hears_it():
    async with connector() as (made, ways):
        made.dial()
        await ways.until(Accepted())
        ways.lines[0].items.put_nowait(b"said before")
        ways.events.clear()
        made.attach(take=False)
        assert ways.log == ["dial", "abort"]
        await ways.until(Attached(77.0))
        made.dial()
        await ways.until(Accepted())
        ways.lines[0].items.put_nowait(b"said after")
        await asyncio.sleep(0)
    assert ways.log[:5] == ["dial", "abort", "gone", "attach False", "dial"]
    assert Received(b"said after") not in ways.events


async def test_an_attempt_under_way_is_given_up_for_the_next():
    async with connector() as (made, ways):
        ways.then = asyncio.Event().wait
        made.dial()
        await asyncio.sleep(0)
        ways.then = None
        made.dial()
        await ways.until(Accepted())
        assert (ways.log, ways.events) == (["dial", "dial"], [Accepted()])


async def test_who_hangs_up_says_the_code_and_hears_no_more():
    async with connector() as (made, ways):
        made.dial()
        await ways.until(Accepted())
        made.hang_up(4107)
        for _ in range(10):
            await asyncio.sleep(0)
        assert ways.log == ["dial", "close 4107", "gone"]
    assert ways.events == [Accepted()]


async def test_the_last_words_go_out_before_the_close():
    words = [[b"last"], []]
    async with connector(lambda: words.pop(0)) as (made, ways):
        made.dial()
        await ways.until(Accepted())
        made.stir()
    assert ways.log == ["dial", b"last", "close 1000", "gone"]


async def test_nothing_is_taken_from_the_session_while_the_socket_takes_nothing():
    class Stuck:
        async def wait(self, *_):
            await asyncio.Event().wait()

        receive = send = watch = wait

    taken = []
    talk = Talk(Stuck(), None, lambda: taken.append(1) or [b"x"])
    running = asyncio.create_task(talk.run(Wire()))
    for _ in range(1000):
        talk.stir()
        await asyncio.sleep(0)
    assert len(taken) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


# ---- the real program ---------------------------------------------------------------------------------------------


async def reached(relay, person):
    """The repaint stands on the screen."""
    await relay.host.until(lambda: relay.host.sizes)
    await person.until(b"\x1bc$ ")
    return person


async def works(relay, person, word):
    """What is typed arrives, once."""
    before = len(relay.host.typed)
    await person.type(word)
    await relay.host.until(lambda: len(relay.host.typed) >= before + len(word))
    assert bytes(relay.host.typed[before:]) == word


def settings(home, text):
    (home / "config.toml").write_text(text)


async def test_what_was_typed_meanwhile_arrives_once(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    await works(relay, person, b"be")
    relay.pairs = False
    relay.cut()
    await person.type(b"tween\r")
    await relay.until_dialled(2)
    await relay.pair()
    await relay.host.until(lambda: relay.host.typed == b"between\r")
    await relay.host.exit(3)
    assert await person.ended() == 3
    assert not relay.requests_of("POST", "/attach")


async def test_every_code_that_leads_back(relay, sit, home):
    settings(home, "[device]\nbackoff_cap = 0.1\n")
    person = await reached(relay, sit("open", "lab-1"))
    attaches = 0
    for count, code in enumerate((1011, 1009, 1012, 4009, 4102, 4104, 4106, 4107, 4109), start=2):
        await relay.side.close(code)
        await relay.until_dialled(count)
        await works(relay, person, b"%d" % code)
        attaches += retry_of(code, "stream") == "attach"
    assert len(relay.requests_of("POST", "/attach")) == attaches


@pytest.mark.parametrize("code", [1000, 4100, 4105])
async def test_codes_that_do_not(relay, sit, code):
    person = await reached(relay, sit("open", "lab-1"))
    await relay.side.close(code)
    assert await person.ended() == 255
    assert len(relay.upgrades) == 1
    assert "\nbothy: " in person.text()
    assert person.settings() == person.before


async def test_a_relay_that_went_away_is_found_when_it_is_back(relay, sit, home):
    settings(home, "[device]\nbackoff_cap = 0.1\n")
    person = await reached(relay, sit("open", "lab-1"))
    relay.go_away()
    await person.until(b"the relay is out of reach; ")
    await person.type(b"kept")
    await person.until(b"4 keys waiting, Ctrl-C drops them")
    await relay.come_back()
    await relay.host.until(lambda: bytes(relay.host.typed) == b"kept")
    await person.until(b"reconnected after ")
    await person.until(b"\x1b[2K")


async def test_enter_tries_now_and_is_not_sent(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.mute = True
    relay.cut()
    await relay.until_upgrades(2)
    relay.cut()  # again, so that the next try is later
    await person.until(b"; Enter tries now, Ctrl-C gives up")
    await person.type(b"\r")
    await relay.until_upgrades(3)
    relay.mute = False
    relay.cut()
    await relay.until_dialled(2)
    await works(relay, person, b"x")
    assert bytes(relay.host.typed) == b"x"


async def test_ctrl_c_gives_up_and_says_how_to_go_on(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.go_away()
    await person.until(b"the relay is out of reach; ")
    await person.type(b"\x03")
    assert await person.ended() == 255
    assert f"bothy: the relay is out of reach; the session goes on: bothy attach {relay.session_id}" in person.text()
    assert person.settings() == person.before


async def test_a_half_closed_connection_is_a_lost_one(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.half_close()
    await relay.until_dialled(2)
    await works(relay, person, b"on")


async def test_a_connection_that_hangs_is_a_lost_one(relay, sit, home):
    settings(home, "[wire]\nping_interval = 0.3\nping_timeout = 2.0\n")
    person = await reached(relay, sit("open", "lab-1"))
    relay.freeze()
    await relay.until_dialled(2)
    await works(relay, person, b"on")


async def test_a_relay_that_takes_the_connection_and_says_nothing_is_tried_again(relay, sit, home):
    settings(home, "[device]\nrequest_timeout = 1.0\nbackoff_cap = 0.1\n")
    person = await reached(relay, sit("open", "lab-1"))
    relay.mute = True
    relay.cut()
    await relay.until_upgrades(3)
    relay.mute = False
    await relay.until_dialled(2)
    await works(relay, person, b"on")


async def test_a_signal_ends_an_attempt_under_way(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.mute = True
    relay.cut()
    await relay.until_upgrades(2)
    person.process.send_signal(signal.SIGTERM)
    assert await person.ended() == 143
    assert person.settings() == person.before


async def test_a_resize_in_an_outage_is_the_first_thing_that_the_host_hears(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.pairs = False
    relay.cut()
    person.resize(90, 30)
    await relay.until_dialled(2)
    await person.until(b"waiting for lab-1")
    relay.host.sizes.clear()
    await relay.pair()
    await relay.host.until(lambda: relay.host.sizes)
    assert relay.host.sizes == [(90, 30)]


async def test_another_device_holds_the_session_and_enter_takes_it_back(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    await relay.side.close(4103)
    await person.until(b"continued on another device; Enter takes it back, Ctrl-C leaves")
    await person.type(b"lost")
    await person.until(b"\a")
    await person.type(b"\r")
    await relay.until_dialled(2)
    await works(relay, person, b"mine")
    assert bytes(relay.host.typed) == b"mine"


async def test_a_session_is_not_taken_from_another_device_by_itself(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.device_of_session = uuid.uuid4()
    await relay.side.close(4102)
    await person.until(b"continued on another device; Enter takes it back, Ctrl-C leaves")
    assert not relay.requests_of("POST", "/attach")
    await person.type(b"\r")
    await relay.until_dialled(2)
    await works(relay, person, b"mine")


async def test_a_session_that_another_device_left_is_gone_on_with(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.device_of_session, relay.session_state = uuid.uuid4(), "detached"
    await relay.side.close(4102)
    await relay.until_dialled(2)
    await works(relay, person, b"mine")


async def test_a_session_that_ended_meanwhile_is_told_with_its_reason(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.session_state, relay.close_reason = "closed", "idle"
    await relay.side.close(4102)
    assert await person.ended() == 255
    assert "bothy: closed by the relay: idle (nothing was typed or printed for too long)" in person.text()
    assert not relay.requests_of("POST", "")[0][1].endswith("/attach")


async def test_another_key_of_the_host_ends_it(relay, sit):
    person = await reached(relay, sit("open", "lab-1"))
    relay.host_key = X25519PrivateKey.generate()
    await relay.side.close(4102)
    assert await person.ended() == 255
    assert "another key of the host; nothing was sent to it" in person.text()
    assert len(relay.upgrades) == 1


async def test_a_host_that_is_away_and_a_database_that_is_away_are_waited_for(relay, sit, home):
    settings(home, "[device]\nbackoff_cap = 0.1\n")
    person = await reached(relay, sit("open", "lab-1"))
    path = f"/terminal/sessions/{relay.session_id}/attach"
    relay.refusals[path] = (409, "host_unavailable", {})
    await relay.side.close(4102)
    await person.until(b"lab-1 is away; ")
    relay.refusals[path] = (503, "unavailable", {})
    await person.until(b"the relay is busy; ")
    relay.refusals[path] = (502, b"<html>", {})
    await person.until(b"the relay is out of reach; ")
    relay.refusals.clear()
    await relay.until_dialled(2)
    await works(relay, person, b"on")


async def test_a_pipe_reconnects_and_says_so_once(relay, sit):
    bothy = Path(sys.executable).with_name("bothy")
    line = f"printf 'first\\n' | {bothy} open lab-1 | cat; exit ${{PIPESTATUS[1]}}"
    person = sit("-c", line, program="bash")
    await relay.host.until(lambda: bytes(relay.host.typed) == b"first\n")
    relay.pairs = False
    relay.cut()
    await relay.until_dialled(2)
    await person.until(b"bothy: lost the relay; trying to reconnect")
    await relay.side.close(4102)
    await relay.until_dialled(3)
    await relay.pair()
    await relay.host.print(b"output\r\n")
    await relay.host.exit(5)
    assert await person.ended() == 5
    assert b"$ output" in person.screen
    assert person.screen.count(b"reconnect") == 1
