"""Open, attach, list, get, close: each refusal in its order and without a trace, each success told once."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from bothy_server.identity.app.api import StreamToken, add_owner
from bothy_server.kernel.caller import RepeatKey
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.open_session import SessionLimits, Sessions
from bothy_server.terminal.app.ports import SessionPage
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen

NOBODY = UUID(int=1)
RESUME_WINDOW_S = 3600
LIMITS = SessionLimits(
    max_sessions_per_person=3,
    max_sessions_per_host=4,
    open_rate=Rate(30, 60),
    max_duration=7200,
    resume_window=RESUME_WINDOW_S,
)
OPENING, ACTIVE, DETACHED, CLOSED = SessionState


@pytest.fixture
def new_sessions(rows, tokens, presence):
    """The use cases with other limits."""

    def make(**limits):
        return Sessions(rows.uow, tokens, rows.clock, presence, replace(LIMITS, **limits))

    return make


@pytest.fixture
def sessions(new_sessions):
    return new_sessions()


async def refusal(rows, attempt):
    """The code of a refusal that left nothing behind: no row, no audit, no event, no signal, no spent step-up."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


def attempt(sessions, device, host, step_up_id=NOBODY, repeat=None):
    """An open that has everything but, unless given, the step-up."""
    return sessions.open(device.caller, host.id, "shell", "alex-shell", step_up_id, repeat)


async def opened(sessions, rows, device, host, **act):
    step_up_id = await rows.step_up(device, host, **act)
    profile, session_user = act.get("profile", "shell"), act.get("session_user", "alex-shell")
    return await sessions.open(device.caller, host.id, profile, session_user, step_up_id)


# ---- open -----------------------------------------------------------------------------------------------------------


async def test_an_open_writes_the_row_and_tells_the_others(sessions, rows, tokens, device, host, link):
    answer = await opened(sessions, rows, device, host)
    record = await rows.record(answer.record.id)
    assert answer.record == record
    assert (record.host_id, record.person_id, record.device_id) == (host.id, device.person_id, device.id)
    assert (record.profile, record.session_user, record.state) == ("shell", "alex-shell", OPENING)
    assert (record.attach_seq, record.paired_seq, record.paired_at) == (1, 0, None)
    assert record.expires_at - record.opened_at == timedelta(seconds=LIMITS.max_duration)
    assert tokens.read(StreamToken, answer.stream_token) == StreamToken(record.id, device.id, 1)
    assert (answer.expires_in_s, answer.host_channel_key) == (60, host.keys.public[1])
    assert await rows.audit(session_id=record.id, device_id=device.id) == [("terminal.open", "opened")]
    assert await rows.events(session_id=record.id, host_id=host.id) == ["terminal_session.changed"]
    assert rows.signals.committed_ones == [SessionOpen(host.id, record.id)]
    assert sessions.opened == 1


async def test_an_open_is_refused_in_the_order_of_the_specification(new_sessions, rows, device, presence):
    """Everything is wrong at first; each step mends one thing and meets the next refusal."""
    sessions = new_sessions(max_sessions_per_person=1)
    owner = await rows.device()
    host = await rows.host(owner)
    await rows.run("UPDATE hosts SET state = 'pending' WHERE id = :id", id=host.id)
    wanted = {"profile": "nothing", "session_user": "nobody"}

    async def meets(status, code, step_up_id=NOBODY):
        wrong = sessions.open(device.caller, host.id, wanted["profile"], wanted["session_user"], step_up_id)
        assert await refusal(rows, wrong) == (status, code)

    await meets(404, "host_unknown")
    await rows.grant(device, host, "alex-shell")
    await meets(403, "right_missing")
    async with rows.uow() as unit:
        await add_owner(unit, device.person_id, host.id)
    await meets(409, "host_not_active")
    await rows.run("UPDATE hosts SET state = 'active' WHERE id = :id", id=host.id)
    live = await rows.session(device, host)
    await meets(409, "host_unavailable")
    presence.alive(rows.link(host.id))
    await meets(422, "profile_unknown")
    wanted["profile"] = "shell"
    await meets(422, "user_unknown")
    wanted["session_user"] = "alex-shell"
    await meets(429, "session_limit")
    await sessions.close(device.caller, live.id)
    await meets(401, "step_up_required")
    await opened(sessions, rows, device, host)


async def test_a_host_that_is_not_there_is_told_like_a_foreign_one(sessions, rows, device):
    foreign = await rows.host()
    details = set()
    for host_id in (NOBODY, foreign.id):
        with pytest.raises(Problem) as raised:
            await sessions.open(device.caller, host_id, "shell", "alex-shell", NOBODY)
        details.add((raised.value.status, raised.value.code, raised.value.detail))
    assert len(details) == 1


async def test_an_operator_has_no_right_by_that(sessions, rows, host, link):
    operator = await rows.device(operator=True)
    step_up_id = await rows.step_up(operator, host)
    assert await refusal(rows, attempt(sessions, operator, host, step_up_id)) == (404, "host_unknown")


async def test_a_guest_opens_as_whom_the_grant_says(sessions, rows, host, link):
    guest = await rows.device()
    await rows.grant(guest, host, "robin-shell")
    assert await refusal(rows, attempt(sessions, guest, host)) == (403, "right_missing")
    assert (await opened(sessions, rows, guest, host, session_user="robin-shell")).record.session_user == "robin-shell"


async def test_a_profile_for_a_group_leaves_the_user_to_the_host(sessions, rows, device, host, link):
    """The server does not know who is in a group of the machine."""
    await rows.run(
        """UPDATE hosts SET reported_profiles = '{"staff": ["@staff"], "none": []}' WHERE id = :id""", id=host.id
    )
    assert (await opened(sessions, rows, device, host, profile="staff", session_user="sam")).record.profile == "staff"
    with pytest.raises(Problem, match="user_unknown") as raised:
        await sessions.open(device.caller, host.id, "none", "sam", NOBODY)
    assert "it allows: none" in raised.value.detail
    with pytest.raises(Problem, match="profile_unknown") as raised:
        await sessions.open(device.caller, host.id, "shell", "sam", NOBODY)
    assert "it offers: none, staff" in raised.value.detail


@pytest.mark.parametrize("act", [{"purpose": "attach"}, {"session_user": "robin-shell"}, {"ttl_s": -1}])
async def test_a_step_up_for_another_act_opens_nothing(sessions, rows, device, host, link, act):
    step_up_id = await rows.step_up(device, host, **act)
    assert await refusal(rows, attempt(sessions, device, host, step_up_id)) == (401, "step_up_required")


async def test_a_step_up_opens_once_also_at_once(sessions, rows, device, host, link):
    step_up_id = await rows.step_up(device, host)
    attempts = [attempt(sessions, device, host, step_up_id) for _ in range(3)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Opened", "Problem", "Problem"]
    assert {each.code for each in results if isinstance(each, Problem)} == {"step_up_required"}
    assert await rows.run("SELECT count(*) FROM terminal_sessions WHERE host_id = :id", id=host.id) == [(1,)]


async def test_sessions_of_a_person_and_of_a_host_are_bounded(new_sessions, rows, device, host, link):
    other = await rows.device()
    await rows.grant(other, host)
    elsewhere = await rows.host(device)
    for _ in range(2):
        await rows.session(device, elsewhere)
    await rows.session(other, host, CLOSED)
    too_many = (429, "session_limit")
    assert await refusal(rows, attempt(new_sessions(max_sessions_per_person=2), device, host)) == too_many
    await opened(new_sessions(max_sessions_per_person=3), rows, device, host)
    assert await refusal(rows, attempt(new_sessions(max_sessions_per_host=1), other, host)) == too_many
    await opened(new_sessions(max_sessions_per_host=2), rows, other, host)


async def test_opens_at_once_do_not_pass_the_bound_together(new_sessions, rows, device, host, link):
    sessions = new_sessions(max_sessions_per_person=2)
    attempts = [opened(sessions, rows, device, host) for _ in range(5)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Opened"] * 2 + ["Problem"] * 3


async def test_a_bound_says_when_the_first_of_the_sessions_ends_by_its_age(new_sessions, rows, device, host, link):
    session = await rows.session(device, host)
    ending = "UPDATE terminal_sessions SET expires_at = clock_timestamp() + interval '1000 s' WHERE id = :id"
    await rows.run(ending, id=session.id)
    for bound in ("max_sessions_per_person", "max_sessions_per_host"):
        with pytest.raises(Problem) as raised:
            await attempt(new_sessions(**{bound: 1}), device, host)
        assert raised.value.code == "session_limit"
        assert 900 < raised.value.retry_after_s <= 1000


async def test_opens_of_a_person_have_a_rate_whatever_became_of_the_sessions(new_sessions, rows, device, host, link):
    sessions = new_sessions(open_rate=Rate(2, 3600))
    for _ in range(2):
        await sessions.close(device.caller, (await opened(sessions, rows, device, host)).record.id)
    phone, other = await rows.device(device.person_id), await rows.device()
    await rows.grant(other, host)
    for caller in (device, phone):
        before = await rows.content()
        with pytest.raises(Problem) as raised:
            await attempt(sessions, caller, host)
        assert await rows.content() == before
        assert (raised.value.status, raised.value.code) == (429, "rate_limited")
        assert 3500 < raised.value.retry_after_s <= 3600
    await opened(sessions, rows, other, host)
    later = "UPDATE terminal_sessions SET opened_at = opened_at - make_interval(secs => :s) WHERE person_id = :id"
    await rows.run(later, s=raised.value.retry_after_s, id=device.person_id)
    await opened(sessions, rows, phone, host)


# ---- sent twice ----------------------------------------------------------------------------------------------------

REPEAT = RepeatKey("one", bytes(32), 3600)


async def test_an_open_that_is_sent_again_opens_nothing_and_gets_a_new_token(
    sessions, rows, tokens, device, host, link
):
    """Its step-up is spent and asked for no more; no limit and no absent host matters any more."""
    step_up_id = await rows.step_up(device, host)
    first = await attempt(sessions, device, host, step_up_id, REPEAT)
    rows.clock.advance(1)
    before = await rows.content()
    again = await attempt(sessions, device, host, step_up_id, REPEAT)
    assert await rows.content() == before
    assert replace(again, stream_token=first.stream_token) == first
    assert again.stream_token != first.stream_token
    assert tokens.read(StreamToken, again.stream_token) == StreamToken(first.record.id, device.id, 1)
    assert sessions.opened == 1


async def test_an_open_that_was_refused_may_be_sent_again(sessions, rows, device, host, link):
    assert await refusal(rows, attempt(sessions, device, host, repeat=REPEAT)) == (401, "step_up_required")
    await attempt(sessions, device, host, await rows.step_up(device, host), REPEAT)


async def test_an_open_sent_twice_at_once_opens_one_session(sessions, rows, device, host, link):
    step_up_id = await rows.step_up(device, host)
    answers = await asyncio.gather(*(attempt(sessions, device, host, step_up_id, REPEAT) for _ in range(4)))
    assert len({each.record.id for each in answers}) == 1
    assert sessions.opened == 1


async def test_an_attach_that_is_sent_again_raises_nothing(sessions, rows, tokens, device, host, link):
    session = await rows.session(device, host, DETACHED)
    first = await sessions.attach(device.caller, session.id, None, REPEAT)
    before = await rows.content()
    again = await sessions.attach(device.caller, session.id, None, REPEAT)
    assert await rows.content() == before
    assert again.record == first.record
    assert tokens.read(StreamToken, again.stream_token) == StreamToken(session.id, device.id, 2)


async def test_a_repeat_gets_no_token_for_a_session_that_went_on_elsewhere_or_ended(sessions, rows, device, host, link):
    opening, attaching = REPEAT, RepeatKey("two", bytes(32), 3600)
    session_id = (await attempt(sessions, device, host, await rows.step_up(device, host), opening)).record.id
    await sessions.attach(device.caller, session_id, None, attaching)
    again = attempt(sessions, device, host, repeat=opening)
    assert await refusal(rows, again) == (409, "replaced")
    await sessions.attach(device.caller, session_id, None)
    again = sessions.attach(device.caller, session_id, None, attaching)
    assert await refusal(rows, again) == (409, "replaced")
    await sessions.close(device.caller, session_id)
    again = sessions.attach(device.caller, session_id, None, attaching)
    assert await refusal(rows, again) == (409, "session_closed")


async def test_a_repeat_that_meets_a_new_pairing_of_the_host_is_told_that_the_session_ended(
    sessions, rows, device, host, link
):
    """As between the two reads, of the session and of its host."""
    await attempt(sessions, device, host, await rows.step_up(device, host), REPEAT)
    await rows.run("UPDATE hosts SET signing_key = NULL, channel_key = NULL WHERE id = :id", id=host.id)
    assert await refusal(rows, attempt(sessions, device, host, repeat=REPEAT)) == (409, "session_closed")


async def test_a_key_of_another_request_is_refused_before_the_step_up(sessions, rows, device, host, link):
    await attempt(sessions, device, host, await rows.step_up(device, host), REPEAT)
    other = RepeatKey("one", bytes(31) + b"\1", 3600)
    step_up_id = await rows.step_up(device, host)
    again = attempt(sessions, device, host, step_up_id, other)
    assert await refusal(rows, again) == (422, "idempotency_mismatch")


# ---- attach ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_the_same_device_attaches_without_a_step_up(sessions, rows, tokens, device, host, link, state):
    session = await rows.session(device, host, state)
    answer = await sessions.attach(device.caller, session.id, None)
    record = await rows.record(session.id)
    assert record == replace(session, attach_seq=2)
    assert answer.record == record
    assert tokens.read(StreamToken, answer.stream_token) == StreamToken(session.id, device.id, 2)
    assert answer.host_channel_key == host.keys.public[1]
    assert await rows.audit(session_id=session.id) == [("terminal.attach", "attached")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert rows.signals.committed_ones == [SessionOpen(host.id, session.id)]


async def test_a_step_up_that_is_not_needed_is_not_spent(sessions, rows, device, host, link):
    session = await rows.session(device, host, ACTIVE)
    step_up_id = await rows.step_up(device, host, "attach")
    await sessions.attach(device.caller, session.id, step_up_id)
    assert await rows.run("SELECT consumed_at FROM step_ups WHERE id = :id", id=step_up_id) == [(None,)]


@pytest.mark.parametrize(("beyond", "code"), [(0, None), (0.001, "step_up_required")])
async def test_after_the_resume_window_the_same_device_confirms_again(
    sessions, rows, device, host, link, clock, beyond, code
):
    session = await rows.session(device, host, DETACHED)
    left = clock.now() - timedelta(seconds=RESUME_WINDOW_S + beyond)
    await rows.run("UPDATE terminal_sessions SET detached_at = :left WHERE id = :id", id=session.id, left=left)
    if code is None:
        await sessions.attach(device.caller, session.id, None)
        return
    assert await refusal(rows, sessions.attach(device.caller, session.id, None)) == (401, code)
    await sessions.attach(device.caller, session.id, await rows.step_up(device, host, "attach"))


async def test_another_device_of_the_person_takes_the_session_over_with_a_step_up(sessions, rows, device, host, link):
    session = await rows.session(device, host, ACTIVE)
    phone = await rows.device(device.person_id)
    assert await refusal(rows, sessions.attach(phone.caller, session.id, None)) == (401, "step_up_required")
    for_opening = await rows.step_up(phone, host, "open")
    assert await refusal(rows, sessions.attach(phone.caller, session.id, for_opening)) == (401, "step_up_required")
    of_the_other = await rows.step_up(device, host, "attach")
    assert await refusal(rows, sessions.attach(phone.caller, session.id, of_the_other)) == (401, "step_up_required")
    step_up_id = await rows.step_up(phone, host, "attach")
    await sessions.attach(phone.caller, session.id, step_up_id)
    record = await rows.record(session.id)
    assert (record.device_id, record.attach_seq, record.state) == (phone.id, 2, ACTIVE)
    assert await refusal(rows, sessions.attach(device.caller, session.id, step_up_id)) == (401, "step_up_required")


async def test_an_attach_is_refused_in_the_order_of_the_specification(sessions, rows, device, presence):
    host = await rows.host(device)
    session = await rows.session(device, host, ACTIVE)
    phone, stranger = await rows.device(device.person_id), await rows.device()
    await rows.run("UPDATE hosts SET state = 'disabled' WHERE id = :id", id=host.id)
    await rows.run("DELETE FROM host_owners WHERE host_id = :id", id=host.id)

    async def meets(status, code, caller=phone.caller):
        assert await refusal(rows, sessions.attach(caller, session.id, NOBODY)) == (status, code)

    await meets(404, "session_unknown", stranger.caller)
    await meets(404, "host_unknown")
    await rows.grant(device, host, "robin-shell")
    await meets(403, "right_missing")
    await rows.grant(device, host, "alex-shell")
    await meets(409, "host_not_active")
    await rows.run("UPDATE hosts SET state = 'active' WHERE id = :id", id=host.id)
    await meets(409, "host_unavailable")
    presence.alive(rows.link(host.id))
    await meets(401, "step_up_required")
    await sessions.close(device.caller, session.id)
    await meets(409, "session_closed")
    await meets(404, "session_unknown", stranger.caller)


async def test_a_session_that_is_not_there_is_told_like_a_foreign_one(sessions, rows, device, host, link):
    session = await rows.session(await foreign_device(rows, host), host)
    details = set()
    for session_id in (NOBODY, session.id):
        for call in (
            sessions.attach(device.caller, session_id, None),
            sessions.get(device.caller, session_id),
            sessions.close(device.caller, session_id),
        ):
            before = await rows.content()
            with pytest.raises(Problem) as raised:
                await call
            assert await rows.content() == before
            details.add((raised.value.status, raised.value.code, raised.value.detail))
    assert {(status, code) for status, code, _ in details} == {(404, "session_unknown")}
    assert len(details) == 1


async def foreign_device(rows, host):
    device = await rows.device()
    await rows.grant(device, host)
    return device


async def test_attaches_at_once_have_an_order(sessions, rows, device, host, link):
    session = await rows.session(device, host, ACTIVE)
    answers = await asyncio.gather(*(sessions.attach(device.caller, session.id, None) for _ in range(3)))
    assert sorted(each.record.attach_seq for each in answers) == [2, 3, 4]


# ---- list, get, close -----------------------------------------------------------------------------------------------


async def test_a_person_sees_their_sessions_newest_first(sessions, rows, device, host, clock):
    made = []
    for state in (CLOSED, OPENING, ACTIVE, DETACHED):
        made.append(await rows.session(device, host, state))
        clock.advance(0.002)
    await rows.session(await foreign_device(rows, host), host)
    live = await sessions.list(device.caller, SessionPage(closed=False))
    everything = await sessions.list(device.caller, SessionPage(closed=True))
    assert [each.record for each in live] == made[:0:-1]
    assert [each.record for each in everything] == made[::-1]
    assert {(each.host_name, each.device_name) for each in everything} == {(host.name, "laptop")}
    phone = await rows.device(device.person_id)
    assert await sessions.list(phone.caller, SessionPage(closed=True)) == everything
    assert (await sessions.get(device.caller, made[0].id)).record == made[0]


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_a_person_closes_a_session_from_any_device(sessions, rows, device, host, state):
    """Nothing is asked of the host: a session can be ended while it is away."""
    session = await rows.session(device, host, state)
    phone = await rows.device(device.person_id)
    view = await sessions.close(phone.caller, session.id)
    assert (view.record.state, view.record.close_reason, view.record.close_detail) == (CLOSED, "client_closed", None)
    assert view.record == await rows.record(session.id)
    assert await rows.audit(session_id=session.id, device_id=phone.id) == [("terminal.close", "client_closed")]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    before = await rows.content()
    assert await sessions.close(device.caller, session.id) == view
    assert await rows.content() == before
