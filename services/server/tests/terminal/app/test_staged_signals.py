"""Which use cases stage which signals. Ends of sessions stage none: they travel through the event log."""

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.pairing import Pairing, PairingLimits
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.domain.host import HostState
from bothy_server.hosts.domain.signals import HostClose
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.open_session import SessionLimits, Sessions
from bothy_server.terminal.app.owner_sessions import OwnerSessions
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen
from bothy_wire.ids import StepUpId


class Connected:
    """Every host is."""

    def connected(self, host_id):
        return True


@pytest.fixture
async def lab(rows):
    device = await rows.device()
    return device, await rows.host(device)


@pytest.fixture
def sessions(rows, tokens):
    return Sessions(rows.uow, tokens, rows.clock, Connected(), SessionLimits(16, 32, Rate(30, 60), 3600, 3600))


@pytest.fixture
def host_sessions(rows):
    return HostSessions(rows.uow, ControlLinks())


async def open_one(rows, sessions, lab):
    device, host = lab
    step_up_id = await rows.step_up(device, host)
    return (await sessions.open(device.caller, host.id, "shell", "alex-shell", step_up_id)).record


async def test_use_cases_stage_signals(rows, sessions, lab):
    """Open and attach; the others have cases of their own."""
    record = await open_one(rows, sessions, lab)
    await sessions.attach(lab[0].caller, record.id, None)
    assert rows.signals.committed_ones == [SessionOpen(lab[1].id, record.id)] * 2
    assert rows.signals.sent == []


@pytest.mark.parametrize("state", [HostState.DISABLED, HostState.RETIRED])
async def test_use_cases_stage_signals_transitions(rows, host_sessions, lab, state):
    await rows.session(*lab, SessionState.ACTIVE)
    await Transitions(rows.uow, host_sessions).set_state(
        lab[1].id, state, lab[0].caller, await rows.managing(lab[0], lab[1].id)
    )
    assert rows.signals.committed_ones == [HostClose(lab[1].id)], "the ends of the sessions stage none"


async def test_use_cases_stage_signals_pairing_again(rows, tokens, host_sessions, lab):
    pairing = Pairing(rows.uow, tokens, rows.clock, [ORIGIN], host_sessions, PairingLimits(900, "confirm"))
    await pairing.issue_code(lab[1].id, lab[0].caller, await rows.managing(lab[0], lab[1].id))
    assert rows.signals.committed_ones == [HostClose(lab[1].id)]


@pytest.mark.parametrize("state", list(SessionState)[:3])
async def test_use_cases_stage_signals_ends_stage_none(rows, sessions, host_sessions, lab, state):
    by_person, by_owner, by_host = [await rows.session(*lab, state) for _ in range(3)]
    await sessions.close(lab[0].caller, by_person.id)
    await OwnerSessions(rows.uow).terminate(lab[0].caller, by_owner.id)
    await host_sessions.ended(rows.link(lab[1].id), by_host.id, "process_exited", 0)
    for session in (by_person, by_owner, by_host):
        assert (await rows.record(session.id)).state is SessionState.CLOSED
    assert rows.signals.committed_ones == rows.signals.sent == []


async def test_use_cases_stage_signals_a_unit_that_fails_tells_nobody(rows, sessions, lab):
    device, host = lab
    with pytest.raises(Problem, match="step_up_required"):
        await sessions.open(device.caller, host.id, "shell", "alex-shell", StepUpId(rows.new_id()))
    assert rows.signals.committed_ones == rows.signals.sent == []
