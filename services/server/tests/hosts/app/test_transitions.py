"""Who may move a host from state to state, and what one such move does."""

import pytest

from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.domain.host import DUPLICATE_CONNECTION, HostState
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.domain.session import SessionState

PENDING, ACTIVE, DISABLED, RETIRED = HostState
REASONS = {DISABLED: "host_disabled", RETIRED: "host_retired"}


@pytest.fixture
def transitions(rows):
    return Transitions(rows.uow, HostSessions(rows.uow, ControlLinks()))


@pytest.fixture
async def owner(rows):
    return await rows.device()


async def stored(rows, host):
    async with rows.uow() as unit:
        return await unit.of(HostStore).get(host.id)


async def refusal(rows, attempt):
    """The code of a refusal that left nothing behind."""
    before = await rows.content()
    with pytest.raises(Problem) as raised:
        await attempt
    assert await rows.content() == before
    return raised.value.status, raised.value.code


@pytest.mark.parametrize("state", [DISABLED, RETIRED])
async def test_leaving_active_ends_every_session_and_tells_all_in_one_unit(rows, transitions, owner, state):
    host = await rows.host(owner)
    sessions = [await rows.session(owner, host, each) for each in list(SessionState)[:3]]
    other = await rows.session(owner, await rows.host(owner), SessionState.ACTIVE)
    await transitions.set_state(host.id, state, owner.caller, await rows.managing(owner, host.id))
    found = await stored(rows, host)
    assert (found.state, found.disabled_reason) == (state, "operator" if state is DISABLED else None)
    for session in sessions:
        assert (await rows.record(session.id)).close_reason == REASONS[state]
        assert await rows.audit(session_id=session.id) == [("terminal.terminate", REASONS[state])]
        assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert (await rows.record(other.id)).state is SessionState.ACTIVE
    assert await rows.audit(host_id=host.id, device_id=owner.id) == [("host.state", state.value)]
    ended = await rows.audit(host_id=host.id, subject_device_id=owner.id)
    assert ended == [("terminal.terminate", REASONS[state])] * 3
    assert (await rows.events(host_id=host.id))[-1] == "host.updated"
    assert rows.signals.committed_ones == [HostClose(host.id)]


async def test_enabling_closes_nothing_since_nothing_is_open(rows, transitions, owner):
    host = await rows.host(owner, state=DISABLED)
    await transitions.set_state(host.id, ACTIVE, owner.caller, await rows.managing(owner, host.id))
    found = await stored(rows, host)
    assert (found.state, found.disabled_reason) == (ACTIVE, None)
    assert await rows.audit(host_id=host.id) == [("host.state", "active")]
    assert await rows.events(host_id=host.id) == ["host.updated"]
    assert rows.signals.committed_ones == []


@pytest.mark.parametrize("state", [ACTIVE, DISABLED, RETIRED])
async def test_the_state_that_a_host_has_changes_nothing(rows, transitions, owner, state):
    host = await rows.host(owner, state=state)
    unspent = await rows.managing(owner, host.id)
    before = await rows.content()
    await transitions.set_state(host.id, state, owner.caller, unspent)
    assert await rows.content() == before


@pytest.mark.parametrize(
    ("source", "target"), [(PENDING, ACTIVE), (PENDING, DISABLED), (RETIRED, ACTIVE), (RETIRED, DISABLED)]
)
async def test_what_the_table_does_not_have_is_refused(rows, transitions, owner, source, target):
    host = await rows.host(owner, state=source)
    attempt = transitions.set_state(host.id, target, owner.caller, await rows.managing(owner, host.id))
    assert await refusal(rows, attempt) == (409, "host_state_conflict")


async def test_a_host_that_was_copied_is_not_enabled_and_may_be_retired(rows, transitions, owner):
    host = await rows.host(owner)
    async with rows.uow() as unit:
        await unit.of(HostStore).set_state(host.id, DISABLED, DUPLICATE_CONNECTION)
    attempt = transitions.set_state(host.id, ACTIVE, owner.caller, await rows.managing(owner, host.id))
    assert await refusal(rows, attempt) == (409, "host_state_conflict")
    await transitions.set_state(host.id, RETIRED, owner.caller, await rows.managing(owner, host.id))
    assert (await stored(rows, host)).state is RETIRED


async def test_operators_and_the_command_line_may_and_others_see_no_host(rows, transitions, owner):
    host = await rows.host(owner)
    granted = await rows.device()
    await rows.grant(granted, host)
    assert await refusal(
        rows, transitions.set_state(host.id, DISABLED, granted.caller, await rows.managing(granted, host.id))
    ) == (404, "host_unknown")
    operator = await rows.device(operator=True)
    await transitions.set_state(host.id, DISABLED, operator.caller, await rows.managing(operator, host.id))
    await transitions.set_state(host.id, ACTIVE, None)
    assert (await stored(rows, host)).state is ACTIVE
