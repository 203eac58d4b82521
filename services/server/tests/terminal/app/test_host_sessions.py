"""What the server makes of a host's report and news (H1 to H3), and what it tells a host about its sessions."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from bothy_kit.recorded import RecordedControlLink
from bothy_server.kernel.ids import new_id
from bothy_server.terminal.app.host_sessions import HostSessions, open_frame
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.frames import HostSessionClose, HostSessionOpen, HostSessionRecorded, ReportedSession

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
NOBODY = UUID(int=1)
LATER_S = 3600
"""A connection made this much later than a pairing is certainly not the one that the pairing was made on."""


@pytest.fixture
def host_sessions(rows, links):
    return HostSessions(rows.uow, links)


@pytest.fixture
def newer(rows, host):
    """A control connection made after everything that happened before."""
    return RecordedControlLink(host.id, new_id(rows.clock.now() + timedelta(seconds=LATER_S)))


@pytest.fixture
def older(rows, host):
    """A control connection made before everything."""
    return RecordedControlLink(host.id, new_id(rows.clock.now() - timedelta(seconds=LATER_S)))


def listed(session, phase="running", *, attached=True):
    return ReportedSession(session_id=session.id, phase=phase, attached=attached)


async def ended(rows, session, reason):
    """Whether the session ended with this reason, and everybody was told once."""
    record = await rows.record(session.id)
    told = await rows.audit(session_id=session.id), await rows.events(session_id=session.id)
    return (record.state, record.close_reason, *told) == (
        CLOSED,
        reason,
        [("terminal.terminate", reason)],
        ["terminal_session.changed"],
    )


# ---- to the host ----------------------------------------------------------------------------------------------------


async def test_a_host_that_is_here_is_told_to_dial(host_sessions, rows, device, host, link):
    session = await rows.session(device, host)
    host_sessions.dial(session)
    (frame,) = link.took(HostSessionOpen)
    assert frame == HostSessionOpen(
        session_id=session.id,
        data_path=f"/api/v1/hosts/sessions/{session.id}/stream",
        profile="shell",
        session_user="alex-shell",
        expires_at=session.expires_at.timestamp(),
    )


async def test_a_host_that_is_here_is_told_of_an_end(host_sessions, rows, device, host, link):
    host_sessions.end(await rows.session(device, host, CLOSED))
    host_sessions.end(await rows.session(device, host, ACTIVE))
    assert [frame.reason for frame in link.took(HostSessionClose)] == ["client_closed"]


async def test_a_host_that_is_elsewhere_is_told_by_another_node(host_sessions, rows, device, host, link):
    link.eligible = False
    host_sessions.dial(await rows.session(device, host))
    host_sessions.end(await rows.session(device, host, CLOSED))
    assert link.sent == []


async def test_a_host_that_is_paired_again_loses_its_sessions_in_the_same_unit(host_sessions, rows, device, host):
    session = await rows.session(device, host, ACTIVE)
    with pytest.raises(LookupError):
        await unpaired(host_sessions, rows, host, LookupError("the unit fails"))
    assert await rows.record(session.id) == session
    await unpaired(host_sessions, rows, host, None)
    assert await ended(rows, session, "host_repaired")


async def unpaired(host_sessions, rows, host, failure):
    async with rows.uow() as unit:
        await host_sessions.unpaired(unit, host.id, "host_repaired")
        if failure is not None:
            raise failure


# ---- a report -------------------------------------------------------------------------------------------------------


async def test_an_opening_that_the_host_does_not_know_is_dialled(host_sessions, rows, device, host, newer):
    """H3. It was opened while nobody could tell the host."""
    session = await rows.session(device, host)
    before = await rows.content()
    await host_sessions.reported(newer, host.boot_id, [])
    assert newer.sent == [open_frame(session)]
    assert await rows.content() == before


async def test_a_host_dials_anew_where_that_was_asked_for_in_its_probation(host_sessions, rows, device, host, newer):
    """L6, D4. What ended meanwhile, and what nobody asked for, is left alone."""
    asked, other, over = [await rows.session(device, host, ACTIVE) for _ in range(3)]
    await host_sessions.serve(newer, host.boot_id, [listed(asked), listed(other)], {asked.id, over.id})
    assert newer.sent == [open_frame(asked)]
    assert await ended(rows, over, "host_lost")


@pytest.mark.parametrize("phase", ["dialling", "confirming"])
async def test_an_opening_that_the_host_is_busy_with_is_left_alone(host_sessions, rows, device, host, newer, phase):
    sessions = [await rows.session(device, host), await rows.session(device, host, paired=True)]
    before = await rows.content()
    await host_sessions.reported(newer, uuid4(), [listed(each, phase) for each in sessions])
    assert newer.sent == []
    assert await rows.content() == before


@pytest.mark.parametrize("attached", [True, False])
async def test_an_opening_that_runs_is_active(host_sessions, rows, device, host, newer, attached):
    session = await rows.session(device, host, paired=True)
    await host_sessions.reported(newer, host.boot_id, [listed(session, attached=attached)])
    record = await rows.record(session.id)
    assert (record.state, record.started_at is not None) == (ACTIVE, True)
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert await rows.audit(session_id=session.id) == []


@pytest.mark.parametrize(
    ("state", "attached", "after"),
    [(ACTIVE, True, ACTIVE), (ACTIVE, False, DETACHED), (DETACHED, True, DETACHED), (DETACHED, False, DETACHED)],
)
async def test_a_running_session_is_detached_when_nobody_watches(
    host_sessions, rows, device, host, newer, state, attached, after
):
    """The node that held its pair died and could not write it."""
    session = await rows.session(device, host, state)
    await host_sessions.reported(newer, host.boot_id, [listed(session, attached=attached)])
    record = await rows.record(session.id)
    assert (record.state, record.detached_at is not None) == (after, after is DETACHED)
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"] * (state is not after)


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_a_host_that_was_restarted_lost_what_it_ran(host_sessions, rows, device, host, older, state):
    """Also in ``opening``, once the sides had met; whichever connection reports it."""
    session = await rows.session(device, host, state, paired=True)
    await host_sessions.reported(older, uuid4(), [])
    assert await ended(rows, session, "host_restarted")


@pytest.mark.parametrize("state", [OPENING, ACTIVE, DETACHED])
async def test_a_session_that_this_boot_forgot_is_lost(host_sessions, rows, device, host, newer, state):
    session = await rows.session(device, host, state, paired=True)
    await host_sessions.reported(newer, host.boot_id, [])
    assert await ended(rows, session, "host_lost")


@pytest.mark.parametrize("state", [OPENING, ACTIVE])
async def test_a_report_that_is_older_than_the_pairing_ends_nothing(host_sessions, rows, device, host, older, state):
    """It was written before the host knew the session."""
    session = await rows.session(device, host, state, paired=True)
    before = await rows.content()
    await host_sessions.reported(older, host.boot_id, [])
    assert await rows.record(session.id) == session
    assert await rows.content() == before
    assert older.sent == []


async def test_a_report_never_ends_an_opening_that_was_never_paired(host_sessions, rows, device, host, newer):
    session = await rows.session(device, host)
    await host_sessions.reported(newer, uuid4(), [])
    assert await rows.record(session.id) == session


async def test_a_session_that_ended_meanwhile_is_closed_on_the_host(host_sessions, rows, device, host, newer):
    closed = await rows.session(device, host, CLOSED)
    foreign = await rows.session(device, await rows.host(device), ACTIVE)
    unknown = ReportedSession(session_id=NOBODY, phase="running", attached=False)
    before = await rows.content()
    await host_sessions.reported(newer, host.boot_id, [listed(closed), listed(foreign), unknown])
    assert {frame.session_id: frame.reason for frame in newer.took(HostSessionClose)} == {
        closed.id: "client_closed",
        foreign.id: "host_repaired",
        NOBODY: "host_repaired",
    }
    assert await rows.content() == before, "nobody reports on another host's session"


async def test_one_report_settles_all_sessions_of_its_host(host_sessions, rows, device, host, newer):
    unknown, started = await rows.session(device, host), await rows.session(device, host, paired=True)
    lost, elsewhere = await rows.session(device, host, ACTIVE), await rows.host(device)
    other = await rows.session(device, elsewhere, ACTIVE)
    await host_sessions.reported(newer, host.boot_id, [listed(started)])
    assert newer.sent == [open_frame(unknown)]
    assert (await rows.record(started.id)).state is ACTIVE
    assert await ended(rows, lost, "host_lost")
    assert await rows.record(other.id) == other


# ---- news -----------------------------------------------------------------------------------------------------------


async def test_a_program_that_runs_is_recorded_once(host_sessions, rows, device, host, link):
    session = await rows.session(device, host, paired=True)
    for _ in range(2):
        await host_sessions.started(link, session.id)
    assert (await rows.record(session.id)).state is ACTIVE
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert link.took(HostSessionRecorded) == [HostSessionRecorded(session_id=session.id, state="active")] * 2


@pytest.mark.parametrize("state", [DETACHED, CLOSED])
async def test_a_late_start_is_answered_by_the_state_that_is_stored(host_sessions, rows, device, host, link, state):
    session = await rows.session(device, host, state)
    await host_sessions.started(link, session.id)
    assert await rows.record(session.id) == session
    assert link.took(HostSessionRecorded) == [HostSessionRecorded(session_id=session.id, state=state.value)]


@pytest.mark.parametrize(
    ("state", "said", "reason", "detail"),
    [
        (ACTIVE, "process_exited", "process_exited", None),
        (DETACHED, "process_exited", "process_exited", None),
        (ACTIVE, "idle", "idle", None),
        (ACTIVE, "max_duration", "max_duration", None),
        (DETACHED, "detach_expired", "detach_expired", None),
        (OPENING, "process_exited", "process_exited", None),
        (OPENING, "refused", "open_failed", "refused"),
        (OPENING, "profile_unknown", "open_failed", "profile_unknown"),
        (OPENING, "user_unknown", "open_failed", "user_unknown"),
        (OPENING, "local_confirm_denied", "open_failed", "local_confirm_denied"),
        (OPENING, "spawn_failed", "open_failed", "spawn_failed"),
        (ACTIVE, "refused", "revoked", None),
    ],
)
async def test_an_end_is_recorded_with_its_reason(host_sessions, rows, device, host, link, state, said, reason, detail):
    session = await rows.session(device, host, state)
    for _ in range(2):
        await host_sessions.ended(link, session.id, said, 3)
    record = await rows.record(session.id)
    assert (record.state, record.close_reason, record.close_detail) == (CLOSED, reason, detail)
    assert await rows.audit(session_id=session.id) == [("terminal.terminate", detail or reason)]
    assert await rows.events(session_id=session.id) == ["terminal_session.changed"]
    assert link.took(HostSessionRecorded) == [HostSessionRecorded(session_id=session.id, state="closed")] * 2


async def test_nobody_speaks_for_another_hosts_session(host_sessions, rows, device, link):
    """It is told what makes it stop; the session of the other host goes on."""
    session = await rows.session(device, await rows.host(device), paired=True)
    before = await rows.content()
    for session_id in (session.id, NOBODY):
        await host_sessions.started(link, session_id)
        await host_sessions.ended(link, session_id, "process_exited", None)
        assert link.took(HostSessionRecorded) == [HostSessionRecorded(session_id=session_id, state="closed")] * 2
    assert await rows.content() == before
