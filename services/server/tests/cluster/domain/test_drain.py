"""The order in which a node leaves (``docs/spec/cluster.md``, N2)."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.cluster.domain.drain import (
    CloseControls,
    CloseListener,
    CloseSides,
    Exit,
    Left,
    Limits,
    Step,
    TurnAway,
    begin,
    deadline,
    step,
)

LIMITS = Limits(notice=0, spread=4, control_wait=5, batch=50, batch_gap=0.5, timeout=60)
NOTHING = Left(0, 0)


class Node:
    """What a drain does to a node whose peers go as soon as they are told, but for those that ``hang``."""

    def __init__(self, controls=0, pairs=0, lone=0, others=0, *, limits=LIMITS, hang_controls=0, hang_pairs=0):
        self.controls, self.pairs, self.lone, self.others = controls, pairs, lone, others
        self.hang_controls, self.hang_pairs = hang_controls, hang_pairs
        self.limits = limits
        self.told = []

    @property
    def left(self):
        return Left(self.controls, 2 * self.pairs + self.lone, self.others)

    def drain(self, at=0.0):
        """All of it; every act with its instant."""
        state, acts = begin(at)
        self._obey(acts, at)
        while (due := deadline(state, self.limits)) is not None:
            assert due >= at, "time does not go back"
            at = due
            state, acts = step(state, self.left, at, self.limits)
            self._obey(acts, at)
        assert state.step is Step.OVER
        return self.told

    def _obey(self, acts, at):
        for act in acts:
            match act:
                case CloseControls(count):
                    self.controls = max(self.hang_controls, self.controls - count)
                case CloseSides(pairs):
                    self.lone = 0
                    self.pairs = max(self.hang_pairs, self.pairs - pairs)
                case _:
                    pass
        self.told += [(at, act) for act in acts]


def test_an_empty_node_goes_at_once():
    assert Node().drain(7.0) == [(7.0, TurnAway()), (7.0, CloseListener()), (7.0, Exit())]


def test_the_edge_gets_its_notice_before_the_listener_closes():
    assert Node(limits=replace(LIMITS, notice=3)).drain() == [(0, TurnAway()), (3, CloseListener()), (3, Exit())]


def test_control_connections_are_spread_and_go_before_sides():
    told = Node(controls=4, pairs=60).drain()
    assert [(at, act) for at, act in told if not isinstance(act, CloseControls)] == [
        (0, TurnAway()),
        (0, CloseListener()),
        (3.5, CloseSides(50)),
        (4.0, CloseSides(50)),
        (4.5, Exit()),
    ]
    assert [at for at, act in told if isinstance(act, CloseControls)] == [0, 1, 2, 3]


def test_many_control_connections_in_one_look_go_together():
    told = [act for _, act in Node(controls=100, limits=replace(LIMITS, spread=0)).drain()]
    assert told == [TurnAway(), CloseListener(), CloseControls(100), Exit()]


def test_a_host_that_does_not_answer_holds_the_sessions_for_a_while_only():
    told = Node(controls=2, pairs=1, hang_controls=1).drain()
    sides = [at for at, act in told if isinstance(act, CloseSides)]
    assert sides == [LIMITS.spread + LIMITS.control_wait]
    assert told[-1] == (LIMITS.timeout, Exit())


def test_whatever_hangs_the_process_ends():
    for node in (Node(pairs=1, hang_pairs=1), Node(others=1), Node(controls=1, hang_controls=1)):
        assert node.drain()[-1] == (LIMITS.timeout, Exit())


def test_when_its_time_is_over_no_batch_goes_before_the_gap():
    told = Node(pairs=500, limits=replace(LIMITS, batch=1, batch_gap=0.7)).drain()
    assert told[-2:] == [(pytest.approx(59.5), CloseSides(1)), (60, Exit())]


def test_a_time_that_is_over_during_the_notice_ends_it():
    assert Node(pairs=1, limits=replace(LIMITS, notice=90)).drain() == [(0, TurnAway()), (60, Exit())]


def test_a_side_that_comes_late_leaves_too():
    """Its handshake was under way when the listener closed."""
    state, _ = begin(0)
    state, _ = step(state, Left(0, 0, others=1), 0, LIMITS)
    state, acts = step(state, Left(0, 1), 0.5, LIMITS)
    assert acts == [CloseSides(50)]
    state, acts = step(state, Left(1, 0), 1.0, LIMITS)
    assert acts == [CloseControls(1)]
    assert step(state, NOTHING, 1.5, LIMITS)[1] == [Exit()]


@pytest.mark.parametrize("others", [1, 5])
def test_an_answer_under_way_is_waited_for(others):
    state, _ = begin(0)
    state, acts = step(state, Left(0, 0, others), 0, LIMITS)
    assert acts == [CloseListener()]
    assert deadline(state, LIMITS) == LIMITS.batch_gap
    assert step(state, NOTHING, 0.5, LIMITS)[1] == [Exit()]


counts = st.integers(0, 200)
times = st.floats(0, 30, allow_nan=False)


@given(counts, counts, counts, times, times, times, st.integers(1, 60), st.booleans())
def test_the_order_is_always_the_same(controls, pairs, lone, notice, spread, wait, batch, stuck):
    limits = Limits(notice, spread, wait, batch, batch_gap=0.2, timeout=120)
    node = Node(controls, pairs, lone, limits=limits, hang_controls=int(stuck and controls > 0))
    told = node.drain()
    kinds = [type(act) for _, act in told]
    assert kinds[:2] == [TurnAway, CloseListener]
    assert kinds[-1] is Exit
    assert kinds.count(Exit) == kinds.count(TurnAway) == kinds.count(CloseListener) == 1
    sides = [at for at, act in told if isinstance(act, CloseSides)]
    controls_told = [at for at, act in told if isinstance(act, CloseControls)]
    if not stuck:
        assert not controls_told or not sides or max(controls_told) < min(sides)
        assert (node.controls, node.pairs, node.lone) == (0, 0, 0)
        # A look after each batch, and after the last control connection.
        assert told[-1][0] <= notice + spread + 0.2 * (pairs / batch + 4)
    assert all(later - earlier >= 0.2 - 1e-9 for earlier, later in itertools.pairwise(sides))
    assert told[-1][0] <= limits.timeout
