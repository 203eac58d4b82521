from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_server.cluster.domain import listener as rules
from bothy_server.cluster.domain.listener import (
    Asking,
    Awaiting,
    Broke,
    Committed,
    Connect,
    Connecting,
    Disconnect,
    Echoed,
    Elapsed,
    Failed,
    Hearing,
    Limits,
    Listened,
    Notifying,
    NotifySelf,
    Pausing,
    Proving,
    Reconcile,
    Reconciled,
    Reconciling,
    Refuse,
    Refused,
    Resting,
    TellHearing,
    TellLost,
)

LIMITS = Limits(backoff_cap=5, watchdog_interval=15, echo_timeout=4)
BROKE = Broke("OperationalError")
LOST = TellLost("OperationalError")


@pytest.mark.parametrize(
    ("state", "event", "now", "then"),
    [
        # The start goes well.
        (Connecting(15, 4), Listened(), 1, (Proving(15), (NotifySelf(),))),
        (Proving(15), Committed(), 2, (Proving(15, 15), ())),
        (Proving(15), Committed(), 14, (Proving(15, 18), ())),
        (Proving(15, 15), Echoed(), 3, (Reconciling(15, Resting(18)), (Reconcile(),))),
        (Proving(15), Echoed(), 3, (Reconciling(15, Notifying(echoed=True)), (Reconcile(),))),
        (Reconciling(15, Resting(18)), Reconciled(), 4, (Hearing(Resting(18)), (TellHearing(restored=False),))),
        # The start meets a database that is away: no reason not to start.
        (Connecting(15, 4), BROKE, 1, (Asking(15, "OperationalError"), (Disconnect(), NotifySelf()))),
        (Connecting(15, 4), Elapsed(), 4, (Asking(15, "connect_timeout"), (Disconnect(), NotifySelf()))),
        (Proving(15, 15), BROKE, 3, (Asking(15, "OperationalError"), (Disconnect(), NotifySelf()))),
        (Asking(15, "x"), Failed("Away"), 2, (Pausing(None, 7), (Disconnect(), TellLost("Away")))),
        (Proving(15), Failed("Away"), 2, (Pausing(None, 7), (Disconnect(), TellLost("Away")))),
        (Reconciling(15, Resting(18)), BROKE, 4, (Pausing(None, 9), (Disconnect(), LOST))),
        # The start meets a database that answers, and a way to listen that does not work.
        (Proving(15, 15), Elapsed(), 15, (Asking(15, "echo_timeout"), (Disconnect(), NotifySelf()))),
        (Asking(15, "x"), Committed(), 2, (Pausing(15, 7), ())),
        (Asking(15, "x"), Committed(), 12, (Pausing(15, 15), ())),
        (Pausing(15, 7), Elapsed(), 7, (Connecting(15, 11), (Connect(),))),
        (Asking(15, "x"), Committed(), 15, (Refused("x"), (Refuse(),))),
        (Refused("x"), Elapsed(), 99, (Refused("x"), ())),
        # The watchdog.
        (Hearing(Resting(18)), Elapsed(), 18, (Hearing(Notifying()), (NotifySelf(),))),
        (Hearing(Notifying()), Committed(), 19, (Hearing(Awaiting(23)), ())),
        (Hearing(Notifying()), Echoed(), 19, (Hearing(Notifying(echoed=True)), ())),
        (Hearing(Notifying(echoed=True)), Committed(), 20, (Hearing(Resting(35)), ())),
        (Hearing(Notifying(echoed=True)), Failed("x"), 20, (Hearing(Resting(35)), ())),
        (Hearing(Notifying()), Failed("x"), 20, (Hearing(Resting(35)), ())),
        (Hearing(Awaiting(23)), Echoed(), 23, (Hearing(Resting(38)), ())),
        (Reconciling(None, Resting(18)), Elapsed(), 18, (Reconciling(None, Notifying()), (NotifySelf(),))),
        (
            Hearing(Awaiting(23)),
            Elapsed(),
            23,
            (Connecting(None, 27), (Disconnect(), TellLost("echo_timeout"), Connect())),
        ),
        # A loss: told once, dialled at once, then at the cap.
        (Hearing(Resting(18)), BROKE, 16, (Connecting(None, 20), (Disconnect(), LOST, Connect()))),
        (Connecting(None, 20), BROKE, 16, (Pausing(None, 21), (Disconnect(),))),
        (Connecting(None, 20), Elapsed(), 20, (Pausing(None, 25), (Disconnect(),))),
        (Pausing(None, 21), Elapsed(), 21, (Connecting(None, 25), (Connect(),))),
        (Proving(None), Committed(), 22, (Proving(None, 26), ())),
        (Proving(None, 26), Elapsed(), 26, (Pausing(None, 31), (Disconnect(),))),
        (Proving(None, 26), BROKE, 23, (Pausing(None, 28), (Disconnect(),))),
        (Proving(None), Failed("x"), 23, (Pausing(None, 28), (Disconnect(),))),
        (Reconciling(None, Resting(38)), BROKE, 24, (Pausing(None, 29), (Disconnect(),))),
        (Reconciling(None, Resting(38)), Reconciled(), 24, (Hearing(Resting(38)), (TellHearing(restored=True),))),
        # What has no meaning changes nothing.
        (Connecting(None, 20), Echoed(), 16, (Connecting(None, 20), ())),
        (Pausing(None, 21), BROKE, 16, (Pausing(None, 21), ())),
        (Asking(15, "x"), Echoed(), 2, (Asking(15, "x"), ())),
        (Proving(15), Listened(), 2, (Proving(15), ())),
        (Hearing(Resting(18)), Echoed(), 16, (Hearing(Resting(18)), ())),
        (Hearing(Resting(18)), Reconciled(), 16, (Hearing(Resting(18)), ())),
        (Hearing(Resting(18)), Elapsed(), 17.9, (Hearing(Resting(18)), ())),
        (Hearing(Notifying()), Elapsed(), 99, (Hearing(Notifying()), ())),
    ],
)
def test_step(state, event, now, then):
    assert rules.step(state, event, now, LIMITS) == then


def test_start():
    assert rules.start(1, LIMITS) == (Connecting(16, 5), (Connect(),))


EVENTS = st.sampled_from(
    [Listened(), Broke("x"), Committed(), Failed("y"), Echoed(), Reconciled(), Elapsed(), Elapsed()]
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 20)), max_size=60))
def test_whatever_happens(happenings):
    """Only what can happen is fed: an answer needs its question. The listener never stops trying, and says each thing once."""
    now, (state, effects) = 0.0, rules.start(0, LIMITS)
    told = list(effects)
    attempt, listening, notifying, reconciling = True, False, False, False
    for event, wait in happenings:
        match event:
            case Elapsed():
                due = rules.deadline(state)
                now = max(now + wait, due) if due is not None else now + wait
            case Listened() if attempt:
                attempt, listening = False, True
            case Broke() if attempt or listening:
                attempt = listening = False
            case Committed() | Failed() if notifying:
                notifying = False
            case Echoed() if listening:
                pass
            case Reconciled() if reconciling:
                reconciling = False
            case _:
                continue
        state, effects = rules.step(state, event, now, LIMITS)
        for effect in effects:
            match effect:
                case Connect():
                    assert not attempt
                    assert not listening
                    attempt = True
                case Disconnect():
                    attempt = listening = notifying = reconciling = False
                case NotifySelf():
                    assert not notifying
                    notifying = True
                case Reconcile():
                    assert event == Echoed()
                    reconciling = True
        told += effects
        if isinstance(state, Refused):
            assert told.count(Refuse()) == 1
            return
        due = rules.deadline(state)
        assert notifying if due is None else due <= now + 15 + 4
        assert isinstance(state, Hearing | Reconciling | Proving) == listening
    news = [effect for effect in told if isinstance(effect, TellLost | TellHearing)]
    for before, after in pairwise([None, *news]):
        if isinstance(after, TellLost):
            assert not isinstance(before, TellLost)
        else:
            assert after.restored == isinstance(before, TellLost)
            assert not isinstance(before, TellHearing)
