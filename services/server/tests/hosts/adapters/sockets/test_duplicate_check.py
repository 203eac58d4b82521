"""The rule of duplicates gets its events and its time, and what it says is done."""

import asyncio
from uuid import UUID

import pytest

from bothy_server.hosts.adapters.sockets.duplicate_check import Acts, DuplicateCheck
from bothy_server.hosts.domain.duplicates import Announced, Gone, Limits, NotWritten, Reported

OWN, NEWER = UUID(int=2), UUID(int=3)
LIMITS = Limits(probe_timeout=3, verdict_retry=2, probation=True)


class Peer:
    """The connection and whoever is at its other end."""

    def __init__(self):
        self.done = []
        self.pings = []

    async def ping(self, payload):
        answer = asyncio.get_running_loop().create_future()
        self.pings.append((payload, answer))
        await answer

    def does(self, what):
        return lambda: self.done.append(what)

    def acts(self):
        return Acts(self.does("announce"), self.ping, self.does("serve"), self.does("disable"), self.does("close"))


@pytest.fixture
def peer():
    return Peer()


@pytest.fixture
async def check(peer, clock):
    async with asyncio.TaskGroup() as tasks:
        check = DuplicateCheck(peer.acts(), clock, LIMITS, tasks)
        yield check
        check.end()


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


async def test_an_answer_has_the_verdict_written_until_the_database_takes_it(check, peer, clock):
    check.admitted(OWN)
    check.feed(Announced(NEWER))
    await turn()
    ((payload, answer),) = peer.pings
    assert len(payload) == 16
    answer.set_result(None)
    await turn()
    assert (peer.done, check.answered) == (["disable"], True)
    check.feed(NotWritten())
    clock.advance(LIMITS.verdict_retry)
    assert peer.done == ["disable", "disable"]


async def test_silence_closes_in_time(check, peer, clock):
    check.behind()
    await turn()
    clock.advance(LIMITS.probe_timeout - 0.001)
    assert peer.done == []
    clock.advance(0.001)
    assert peer.done == ["close"]


async def test_a_late_pong_of_an_earlier_probe_is_no_answer(check, peer):
    check.admitted(OWN)
    for event in (Announced(NEWER), Gone(NEWER), Announced(UUID(int=4))):
        check.feed(event)
        await turn()
    (first, earlier), (second, _) = peer.pings
    assert first != second
    assert earlier.cancelled()
    assert not check.answered


async def test_a_socket_that_ends_answers_nothing(check, peer):
    check.behind()
    await turn()
    peer.pings[0][1].set_exception(ConnectionResetError())
    await turn()
    assert (peer.done, check.answered) == ([], False)


async def test_probation_ends_by_the_clock_and_not_behind_the_end(check, peer, clock):
    check.admitted(OWN)
    check.feed(Reported(frozenset()))
    assert (peer.done, check.serving) == (["announce"], False)
    clock.advance(2 * LIMITS.probe_timeout)
    assert (peer.done, check.serving) == (["announce", "serve"], True)
    check.feed(Announced(NEWER))
    check.end()
    clock.advance(100)
    assert peer.done == ["announce", "serve"]
