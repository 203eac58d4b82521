"""The reconnect rule: every event in every phase, every close code, every refusal."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothy_device import texts
from bothy_device.reconnect import (
    ATTACH,
    LATER,
    Accepted,
    Attach,
    Attached,
    Declined,
    Dial,
    Lost,
    Now,
    Paired,
    Passed,
    Phase,
    Refused,
    State,
    Stop,
    Unreached,
    Woke,
    deadline,
    start,
    step,
)
from bothy_wire.backoff import Backoff
from bothy_wire.close_codes import CloseCode

BACKOFF = Backoff(cap=15, settle=60)
NOW = 100.0
UP = State(Phase.UP, token_until=200.0, reached=True, paired_at=90.0)


def at(phase, **other):
    return dataclasses.replace(UP, phase=phase, **other)


def after(state, event, *, now=NOW, chance=0.0):
    return step(state, event, now, backoff=BACKOFF, chance=chance)


# What a device that had reached the terminal does about every close code: when (at the least, at the most), and how.
SOON, LATER_ON = (0.2, 1.0), (1.0, 3.0)
TABLE = {
    CloseCode.NORMAL: None,
    CloseCode.ABNORMAL: (SOON, Dial()),
    CloseCode.TOO_LARGE: (SOON, Attach()),
    CloseCode.INTERNAL: (LATER_ON, Dial()),
    CloseCode.RESTART: ((0.0, 1.0), Dial()),
    CloseCode.BUSY: (LATER_ON, Dial()),
    CloseCode.SILENT: (SOON, Dial()),
    CloseCode.SESSION_ENDED: None,
    CloseCode.IDENTIFY_REFUSED: None,
    CloseCode.HOST_UNAVAILABLE: (SOON, Attach()),
    CloseCode.IDENTIFY_TIMEOUT: (SOON, Dial()),
    CloseCode.PROTOCOL_VIOLATION: None,
    CloseCode.STALLED: (SOON, Attach()),
    CloseCode.CHANNEL_FAILED: (SOON, Attach()),
    CloseCode.RATE_LIMITED: (LATER_ON, Dial()),
    CloseCode.TOKEN_EXPIRED: (SOON, Attach()),
    CloseCode.HOST_REPAIRED: None,
    CloseCode.HOST_DISABLED: None,
    CloseCode.DUPLICATE_CONNECTION: None,
    CloseCode.VERSION_UNSUPPORTED: None,
    1001: (SOON, Dial()),
    1999: (SOON, Dial()),
    4000: None,
    4999: None,
    2000: None,
}


def test_the_table_is_complete():
    assert {code for code in TABLE if code in set(CloseCode)} | {CloseCode.REPLACED} == set(CloseCode)


@pytest.mark.parametrize("phase", [Phase.DIALLING, Phase.UP])
@pytest.mark.parametrize("code", TABLE)
def test_every_close_code(code, phase):
    if (expected := TABLE[code]) is None:
        state, effect = after(at(phase), Lost(code))
        assert (state.phase, effect) == (Phase.STOPPED, Stop())
        return
    (low, high), then = expected
    for chance, wait in ((0.0, low), (1.0, high)):
        state, effect = after(at(phase), Lost(code), chance=chance)
        assert (state.phase, effect, state.due) == (Phase.WAITING, None, pytest.approx(NOW + wait))
        assert after(state, Passed(), now=state.due)[1] == then


def test_replaced_waits_for_a_person_and_is_taken_back_by_an_attach():
    state, effect = after(UP, Lost(CloseCode.REPLACED))
    assert (state.phase, effect, deadline(state)) == (Phase.REPLACED, None, None)
    for event in (
        Passed(),
        Woke(),
        Lost(1006),
        Accepted(),
        Paired(),
        Unreached(),
        Attached(300.0),
        Refused("replaced"),
    ):
        assert after(state, event) == (state, None)
    state, effect = after(state, Now())
    assert (state.phase, effect) == (Phase.ATTACHING, Attach(take=True))
    state, effect = after(state, Attached(300.0))
    assert (state.phase, state.token_until, effect) == (Phase.DIALLING, 300.0, Dial())


def test_an_attach_that_would_take_the_session_away_asks():
    assert after(at(Phase.ATTACHING), Refused("replaced")) == (at(Phase.REPLACED), None)


@pytest.mark.parametrize("code", [*sorted(texts.PROBLEMS.keys() - {"replaced"}), "", "something new"])
def test_every_refusal_of_an_attach(code):
    state, effect = after(at(Phase.ATTACHING, attach=True), Refused(code))
    if code in LATER:
        assert (state.phase, state.due, effect) == (Phase.WAITING, 101.0, None)
        assert after(state, Passed(), now=101.0)[1] == Attach()
    else:
        assert (state.phase, effect) == (Phase.STOPPED, Stop())


def test_a_relay_that_asks_for_patience_gets_it_and_its_clients_stay_spread():
    """All whose attach came too early are told the same; they must not come back in one moment."""
    refused = Refused("rate_limited", retry_after=20.0)
    assert after(at(Phase.ATTACHING, attach=True), refused)[0].due == 121.0
    assert after(at(Phase.ATTACHING, attach=True), refused, chance=0.5)[0].due == 122.0


def test_what_passes_by_itself_is_tried_without_end():
    state = at(Phase.ATTACHING, attach=True)
    for now in range(1000):
        state, effect = after(state, Refused("host_unavailable") if now % 2 else Unreached(), now=now, chance=0.99)
        assert effect is None
        assert state.due - now <= 15
        state, effect = after(state, Passed(), now=state.due)
        assert effect == Attach()


@pytest.mark.parametrize("code", texts.REFUSALS)
def test_every_refusal_by_the_host(code):
    state, effect = after(UP, Declined(code))
    if code in ATTACH or code == "session_unknown":
        assert (state.phase, state.due, effect) == (Phase.WAITING, 100.2, None)
        assert after(state, Passed(), now=101)[1] == Attach()
    else:
        assert (state.phase, effect) == (Phase.STOPPED, Stop())


def test_a_session_that_the_host_does_not_know_is_attached_once():
    state, _ = after(UP, Declined("session_unknown"))
    assert after(dataclasses.replace(state, phase=Phase.UP), Declined("session_unknown"))[1] == Stop()
    known, _ = after(dataclasses.replace(state, phase=Phase.UP), Paired())
    assert after(known, Declined("session_unknown"))[1] is None


def test_a_token_is_used_as_long_as_it_lives():
    state = at(Phase.WAITING, due=NOW)
    assert after(state, Passed(), now=199.9)[1] == Dial()
    assert after(state, Passed(), now=200.0)[1] == Attach()


def test_a_deadline_is_there_while_waiting_only_and_not_before_its_time():
    for phase in Phase:
        state = at(phase, due=100.5)
        assert deadline(state) == (100.5 if phase is Phase.WAITING else None)
        assert after(state, Passed()) == (state, None)
    assert after(at(Phase.WAITING, due=100.5), Passed(), now=100.5)[1] == Dial()


def test_a_person_cuts_the_wait_short_and_keeps_the_step():
    state, effect = after(at(Phase.WAITING, due=110.0, tries=4), Now())
    assert (state.phase, state.tries, effect) == (Phase.DIALLING, 4, Dial())
    for phase in (Phase.DIALLING, Phase.ATTACHING, Phase.UP, Phase.STOPPED):
        assert after(at(phase), Now()) == (at(phase), None)


@pytest.mark.parametrize("phase", [Phase.DIALLING, Phase.ATTACHING, Phase.UP, Phase.WAITING])
def test_who_wakes_tries_at_once_and_with_the_first_steps(phase):
    state, effect = after(at(phase, tries=9, due=500.0), Woke(), now=150.0)
    assert (state.phase, state.tries, effect) == (Phase.DIALLING, 0, Dial())
    state, effect = after(at(phase, tries=9, due=500.0), Woke(), now=5000.0)
    assert (state.phase, effect) == (Phase.ATTACHING, Attach())


def test_the_steps_grow_and_start_over_after_a_minute_paired():
    state, waits = UP, []
    for _ in range(6):
        state, _ = after(dataclasses.replace(state, phase=Phase.DIALLING), Lost(1006))
        waits.append(round(state.due - NOW, 3))
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
    assert after(dataclasses.replace(state, phase=Phase.UP, paired_at=40.1), Lost(1006))[0].tries == 7
    assert after(dataclasses.replace(state, phase=Phase.UP, paired_at=40.0), Lost(1006))[0].tries == 1


def test_a_connection_that_was_only_accepted_does_not_start_the_steps_over():
    state, _ = after(at(Phase.DIALLING, tries=3), Accepted())
    assert state.paired_at is None
    assert after(state, Lost(4102), now=NOW + 1000)[0].tries == 4


def test_a_first_step_at_random_from_0_is_for_the_first_try_of_a_leaving_node_only():
    assert after(at(Phase.UP, tries=1), Lost(1012))[0].due == NOW + 0.4


# ---- before the terminal was reached ------------------------------------------------------------------------------

FIRST = start(NOW, 60.0)


def test_the_first_token_dials():
    assert (FIRST.phase, FIRST.token_until, FIRST.reached) == (Phase.DIALLING, 160.0, False)


@pytest.mark.parametrize("code", [*TABLE, CloseCode.REPLACED])
def test_before_the_terminal_only_a_relay_that_will_be_back_is_tried_again(code):
    expected = TABLE.get(code)
    state, effect = after(FIRST, Lost(code))
    if expected and expected[1] == Dial():
        assert (state.phase, effect) == (Phase.WAITING, None)
        assert after(state, Passed(), now=159.9)[1] == Dial()
        assert after(state, Passed(), now=160.0)[1] == Stop()
    else:
        assert (state.phase, effect) == (Phase.STOPPED, Stop())


@pytest.mark.parametrize("event", [Unreached(), *map(Declined, texts.REFUSALS)])
def test_before_the_terminal_everything_else_is_final(event):
    state = FIRST if event == Unreached() else after(FIRST, Accepted())[0]
    assert after(state, event)[1] == Stop()


# ---- without reconnecting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [*map(Lost, [*TABLE, CloseCode.REPLACED]), Declined("token_expired"), Woke()])
def test_once_is_once(event):
    assert after(dataclasses.replace(UP, once=True), event)[1] == Stop()


# ---- anything -----------------------------------------------------------------------------------------------------

EVENTS = st.one_of(
    st.sampled_from([Accepted(), Paired(), Unreached(), Passed(), Now(), Woke()]),
    st.builds(Lost, st.sampled_from([*TABLE, CloseCode.REPLACED])),
    st.builds(Declined, st.sampled_from(sorted(texts.REFUSALS))),
    st.builds(Refused, st.sampled_from(sorted(texts.PROBLEMS))),
    st.builds(Attached, st.floats(0, 10_000)),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 100), st.floats(0, 1))), st.booleans())
def test_any_order_of_events_leaves_one_attempt_a_deadline_a_question_or_an_end(events, once):
    state, now = start(0.0, 60.0, once=once), 0.0
    for event, passed, chance in events:
        now += passed
        before = state
        state, effect = after(state, event, now=now, chance=chance)
        match state.phase:
            case Phase.DIALLING | Phase.ATTACHING if state != before or event == Woke():
                assert effect == (
                    Dial() if state.phase is Phase.DIALLING else Attach(take=before.phase is Phase.REPLACED)
                )
            case Phase.WAITING:
                assert deadline(state) is not None
                assert state == before or now <= state.due <= now + 15.001
            case Phase.STOPPED:
                assert effect == (Stop() if before.phase is not Phase.STOPPED else None)
            case _:
                assert effect is None
        if effect == Dial():
            assert now < state.token_until or isinstance(event, Attached)
