"""When two machines hold one key, and when it only looks like it (``docs/spec/cluster.md``, D)."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothy_server.hosts.domain.duplicates import (
    Announce,
    Announced,
    Answered,
    Clear,
    Close,
    Elapsed,
    Gone,
    Limits,
    NotWritten,
    Ponged,
    Probe,
    Probed,
    Reported,
    Serve,
    Silent,
    State,
    Verdict,
    behind,
    deadline,
    is_older,
    probation_end,
    step,
)
from bothy_server.hosts.domain.presence import PresenceLimits, PresenceView
from bothy_server.kernel.ids import new_id

MULTI = Limits(probe_timeout=3, verdict_retry=2, probation=True)
SINGLE = Limits(probe_timeout=3, verdict_retry=2, probation=False)
OLDER, OWN, NEWER, NEWEST = (UUID(int=number) for number in (1, 2, 3, 4))
NONE = frozenset()
AT = 100.0


def run(*events, state=None, limits=SINGLE, now=AT):
    """The state after these events at one instant, and all that was to be done."""
    state, done = state or State(OWN), []
    for event in events:
        state, effects = step(state, event, now, limits)
        done += effects
    return state, done


# ---- order ----------------------------------------------------------------------------------------------------------


def test_older_connection():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    one, other = new_id(now), new_id(now + timedelta(milliseconds=1))
    assert is_older(one, other)
    assert not is_older(other, one)
    assert not is_older(one, one)


def test_probation_end():
    assert probation_end(AT, MULTI) == AT + 6


# ---- D2: the older connection ---------------------------------------------------------------------------------------


def test_an_announced_newer_connection_has_the_older_one_probed_once():
    state, done = run(Announced(NEWER), Announced(NEWER), Announced(NEWEST))
    assert done == [Probe()]
    assert state.against == Probed(frozenset({NEWER, NEWEST}), AT + 3)
    assert deadline(state) == AT + 3


def test_an_answer_makes_the_verdict():
    state, done = run(Announced(NEWER), Ponged(), Ponged())
    assert done == [Probe(), Verdict()]
    assert state.against == Answered(frozenset({NEWER}))
    assert deadline(state) is None


def test_silence_closes_at_the_deadline_and_not_before():
    state, _ = run(Announced(NEWER))
    assert run(Elapsed(), state=state, now=AT + 2.999) == (state, [])
    state, done = run(Elapsed(), Ponged(), Announced(NEWEST), Gone(NEWER), state=state, now=AT + 3)
    assert done == [Close()]
    assert state.against == Silent()


def test_the_verdict_is_dropped_when_the_announced_connection_went_meanwhile():
    assert run(Announced(NEWER), Gone(NEWER), Ponged()) == (State(OWN), [Probe()])
    state, _ = run(Announced(NEWER), Ponged(), Gone(NEWER))
    assert state.against == Clear()
    state, _ = run(Announced(NEWER), Announced(NEWEST), Ponged(), Gone(NEWER))
    assert state.against == Answered(frozenset({NEWEST}))
    assert run(Gone(NEWEST), state=state)[0].against == Clear()


def test_a_verdict_that_the_database_did_not_take_is_written_again():
    state, _ = run(Announced(NEWER), Ponged(), NotWritten())
    assert deadline(state) == AT + 2
    assert run(Elapsed(), state=state, now=AT + 1.9)[1] == []
    state, done = run(Elapsed(), state=state, now=AT + 2)
    assert done == [Verdict()]
    assert deadline(state) is None


def test_an_answer_or_a_failure_that_nobody_waits_for_is_nothing():
    assert run(Ponged(), NotWritten(), Elapsed(), Gone(NEWER)) == (State(OWN), [])


# ---- D3: the newer connection ---------------------------------------------------------------------------------------


def test_a_newer_connection_announces_itself_when_it_hears_of_an_older_one():
    state, _ = run(Reported(NONE))
    assert run(Announced(OLDER), state=state) == (state, [Announce()])


def test_one_that_has_not_reported_says_nothing():
    """The host may have given it up long ago; then it must speak against no other."""
    assert run(Announced(OLDER)) == (State(OWN), [])


def test_hearing_of_itself_is_nothing():
    state, _ = run(Reported(NONE))
    assert run(Announced(OWN), state=state) == (state, [])


# ---- D4: probation, and D1: the same node ---------------------------------------------------------------------------


def test_one_node_alone_needs_no_probation():
    state, done = run(Reported(NONE))
    assert done == [Announce(), Serve()]
    assert state.serving
    assert run(Reported(NONE), state=state) == (state, [])


def test_probation_lasts_twice_the_probe_and_begins_with_the_first_report():
    state, done = run(Reported(NONE), limits=MULTI)
    assert done == [Announce()]
    later, done = run(Reported(NONE), Elapsed(), state=state, now=AT + 5.999, limits=MULTI)
    assert (later, done) == (state, [])
    state, done = run(Elapsed(), state=state, now=AT + 6, limits=MULTI)
    assert done == [Serve()]
    assert state.serving
    assert deadline(state) is None


@pytest.mark.parametrize("limits", [SINGLE, MULTI])
def test_the_newer_waits_until_every_older_one_on_its_node_went(limits):
    state, done = run(Reported(frozenset({OLDER, NEWER})), Elapsed(), limits=limits, now=AT)
    state, more = run(Elapsed(), Gone(OLDER), state=state, limits=limits, now=AT + 6)
    assert (done + more, state.serving) == ([Announce()], False)
    state, done = run(Gone(NEWER), state=state, limits=limits, now=AT + 7)
    assert done == [Serve()]
    assert state.serving


def test_the_older_serves_again_when_the_newer_went():
    state, done = run(Reported(NONE), Announced(NEWER))
    assert not state.serving
    state, done = run(Gone(NEWER), state=state)
    assert done == [Serve()]


# ---- D5: a join value that was passed -------------------------------------------------------------------------------


def test_a_join_value_behind_is_probed_and_only_the_answer_is_a_verdict():
    state, effects = behind(AT, SINGLE)
    assert effects == (Probe(),)
    assert deadline(state) == AT + 3
    assert run(Elapsed(), state=state, now=AT + 3)[1] == [Close()]
    assert run(Announced(NEWER), Gone(NEWER), Ponged(), state=state)[1] == [Verdict()]


def test_a_connection_with_a_join_value_behind_serves_nobody():
    state, _ = behind(AT, SINGLE)
    assert not state.serving


# ---- any history ----------------------------------------------------------------------------------------------------


@dataclass
class Connection:
    """One of a host, on a node. ``answers``: whether somebody is at its other end."""

    state: State
    answers: bool = True
    open: bool = True
    probe: bool = False


@dataclass
class World:
    """Nodes with steady clocks of their own, and signals on their way that come late, twice and in any order."""

    skews: list[int]
    now: float = 0.0
    disabled: bool = False
    number: int = 0
    nodes: list[dict[UUID, Connection]] = field(default_factory=list)
    views: list[PresenceView] = field(default_factory=list)
    under_way: list[list[tuple[bool, UUID]]] = field(default_factory=list)

    def __post_init__(self):
        self.nodes = [{} for _ in self.skews]
        self.views = [PresenceView(PresenceLimits(10, 3)) for _ in self.skews]
        self.under_way = [[] for _ in self.skews]

    def at(self, node):
        return self.now + self.skews[node]

    def connect(self, node):
        """Identify: names grow under the lock of the row, whatever the clock of the node says (D1)."""
        self.number += 1
        name = UUID(int=self.number)
        self.nodes[node][name] = Connection(State(name))
        for other, each in list(self.nodes[node].items()):
            if each.state.reported and other != name:
                self.feed(node, name, Announced(other))
        return name

    def report(self, node, name):
        older = frozenset(each for each in self.nodes[node] if is_older(each, name))
        self.feed(node, name, Reported(older))

    def feed(self, node, name, event):
        each = self.nodes[node].get(name)
        if each is None or self.disabled:
            return
        each.state, effects = step(each.state, event, self.at(node), MULTI)
        for effect in effects:
            match effect:
                case Announce():
                    self.views[node].held(HOST, name, self.at(node))
                    self.tell(node, True, name)
                case Probe():
                    each.probe = True
                case Verdict():
                    self.disabled = True
                case Close():
                    self.leave(node, name)

    def tell(self, node, present, name):
        for waiting in self.under_way:
            waiting.append((present, name))
        for other in list(self.nodes[node]):
            if other != name:
                self.feed(node, other, Announced(name) if present else Gone(name))

    def leave(self, node, name):
        """The node notices the end; it may be long after the host knows."""
        each = self.nodes[node].pop(name, None)
        if each is not None:
            if each.state.reported:
                self.views[node].released(HOST, name, self.at(node))
            self.tell(node, False, name)

    def deliver(self, node, at, *, lost=False, twice=False):
        waiting = self.under_way[node]
        if not waiting:
            return
        present, name = waiting[at % len(waiting)]
        if not twice:
            waiting.pop(at % len(waiting))
        if lost:
            return
        view = self.views[node]
        news = (view.seen if present else view.gone)(HOST, name, self.at(node))
        if news:
            for each in list(self.nodes[node]):
                self.feed(node, each, Announced(name) if present else Gone(name))

    def answer(self, node, name):
        """Somebody who is there answers a ping; nobody else does."""
        each = self.nodes[node].get(name)
        if each is not None and each.probe and each.answers:
            each.probe = False
            self.feed(node, name, Ponged())

    def heartbeat(self, node, name):
        each = self.nodes[node].get(name)
        if each is not None and each.state.reported:
            self.views[node].held(HOST, name, self.at(node))
            self.tell_others(name)

    def tell_others(self, name):
        for waiting in self.under_way:
            waiting.append((True, name))

    def pass_time(self, seconds):
        self.now += seconds
        for node, connections in enumerate(self.nodes):
            for name in list(connections):
                self.feed(node, name, Elapsed())


HOST = UUID(int=99)
NODES = 3
SKEWS = st.lists(st.integers(-60, 60), min_size=NODES, max_size=NODES)
DRAWS = st.integers(0, 999)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["dial", "late", "report", "notice", "deliver", "lose", "twice", "answer", "beat", "wait"]),
        DRAWS,
    ),
    max_size=80,
)


@settings(max_examples=500)
@given(SKEWS, STEPS)
def test_an_honest_host_is_never_disabled(skews, steps):
    """It gives a connection up, or does not hear that it was let in, and dials again; nodes notice late or never."""
    world, current, reported = World(skews), None, False
    held = []
    for what, draw in steps:
        node = draw % NODES
        match what:
            case "dial":
                if current is not None:
                    world.nodes[current[0]].get(current[1], Connection(State(None))).answers = False
                current, reported = (node, world.connect(node)), False
                held.append(current)
            case "late":  # the identify of a connection that the host gave up before it was read
                held.append((node, world.connect(node)))
                world.nodes[node][held[-1][1]].answers = False
            case "report" if current is not None and not reported:
                world.report(*current)
                reported = True
            case "notice" if held:
                gone = held[draw % len(held)]
                if gone != current:
                    world.leave(*gone)
            case "deliver":
                world.deliver(node, draw)
            case "lose":
                world.deliver(node, draw, lost=True)
            case "twice":
                world.deliver(node, draw, twice=True)
            case "answer":
                for each in held:
                    world.answer(*each)
            case "beat" if held:
                world.heartbeat(*held[draw % len(held)])
            case "wait":
                world.pass_time(draw / 100)
        assert not world.disabled
    if current is not None and reported:
        kept = world.nodes[current[0]].get(current[1])
        assert kept is not None, "and its connection stays"
        for at in range(NODES):
            while world.under_way[at]:
                world.deliver(at, 0)
        world.pass_time(2 * MULTI.probe_timeout + 1)
        assert kept.state.serving, "and serves"


@given(SKEWS, st.integers(0, NODES - 1), st.integers(0, NODES - 1), STEPS)
def test_a_copied_key_whose_both_copies_answer_is_always_found(skews, first, second, steps):
    """Signals may be lost and come in any order, as long as heartbeats repeat them; then each ping is answered in time."""
    world = World(skews)
    both = []
    for node in (first, second):
        name = world.connect(node)
        world.report(node, name)
        both.append((node, name))
    for what, draw in steps:
        node = draw % NODES
        match what:
            case "deliver":
                world.deliver(node, draw)
            case "lose":
                world.deliver(node, draw, lost=True)
            case "twice":
                world.deliver(node, draw, twice=True)
            case "beat":
                world.heartbeat(*both[draw % 2])
            case "answer":
                world.answer(*both[draw % 2])
    for each in both:
        world.heartbeat(*each)
    for node in range(NODES):
        while world.under_way[node]:
            world.deliver(node, 0)
    for each in both:
        world.answer(*each)
    assert world.disabled
