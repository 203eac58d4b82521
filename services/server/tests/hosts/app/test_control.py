"""What a host says on its control connection becomes rows, presence and news for the terminal."""

from uuid import UUID, uuid4

import pytest

from bothy_kit.recorded import RecordedSignals
from bothy_kit.rows import PROFILES
from bothy_server.hosts.app.control import Control
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.app.verdict import Verdict
from bothy_server.hosts.domain.host import HostState
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_wire.close_codes import CloseCode
from bothy_wire.frames import HostReport, HostSessionEnded, HostSessionStarted, ReportedSession
from bothy_wire.ids import ConnId

SESSION = UUID(int=7)
BOOT = uuid4()
LAST_SEEN_S = 60


class Terminal:
    """Implements ``HostEvents``."""

    def __init__(self):
        self.told = []

    async def reported(self, link, boot_id, sessions):
        self.told.append(("reported", link, boot_id, list(sessions)))

    async def serve(self, link, boot_id, sessions, deferred):
        self.told.append(("serve", link, boot_id, list(sessions), set(deferred)))

    async def unpaired(self, unit, host_id, reason):
        self.told.append(("unpaired", host_id, reason))

    async def started(self, link, session_id):
        self.told.append(("started", link, session_id))

    async def ended(self, link, session_id, reason, exit_status):
        self.told.append(("ended", link, session_id, reason, exit_status))


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def presence(clock):
    return Presence(ControlLinks(), RecordedSignals(), clock, PresenceLimits(10, 3), 0.25)


@pytest.fixture
def control(rows, presence, terminal):
    return Control(rows.uow, rows.clock, presence, terminal, Verdict(rows.uow, terminal), LAST_SEEN_S)


@pytest.fixture
async def host(rows):
    return await rows.host()


@pytest.fixture
async def link(rows, host):
    """The connection that identified last."""
    link = rows.link(host.id)
    async with rows.uow() as unit:
        await unit.of(HostStore).record_identify(host.id, link.conn_id, host.boot_id, 2, 3)
    return link


async def stored(rows, host):
    async with rows.uow() as unit:
        return await unit.of(HostStore).get(host.id)


def report(**changed):
    fields = {
        "join": "3.kid.signature",
        "profiles": {"other": ["sam", "@staff"]},
        "require_local_confirm": True,
        "sessions": [ReportedSession(session_id=SESSION, phase="running", attached=True)],
        "os": "linux",
        "arch": "riscv64",
    }
    return HostReport(**fields | changed)


async def test_a_report_is_stored_and_the_terminal_hears_what_the_host_runs(
    control, rows, host, link, presence, terminal
):
    await control.report(link, BOOT, report())
    after = await stored(rows, host)
    assert (dict(after.profiles), after.require_local_confirm) == ({"other": ("sam", "@staff")}, True)
    assert await rows.run("SELECT reported_os, reported_arch FROM hosts WHERE id = :id", id=host.id) == [
        ("linux", "riscv64")
    ]
    assert terminal.told == [("reported", link, BOOT, report().sessions)]
    assert not presence.connected(host.id), "it is not eligible before everything is stored"


async def test_a_report_confirms_the_join_value_that_was_offered(control, rows, host, link):
    """Else a copy whose turns alternate with the host's would never be behind (D5)."""
    await control.report(link, BOOT, report())
    after = await stored(rows, host)
    assert (after.join_confirmed, after.join_offered) == (3, 3)


async def test_a_report_of_an_older_connection_writes_nothing(control, rows, host, link):
    newer = ConnId(rows.new_id())
    async with rows.uow() as unit:
        await unit.of(HostStore).record_identify(host.id, newer, BOOT, 3, 4)
    await control.report(link, BOOT, report())
    after = await stored(rows, host)
    assert (after.join_confirmed, after.join_offered) == (3, 4)
    assert {name: list(users) for name, users in after.profiles.items()} == PROFILES


async def test_a_link_that_is_announced_is_present(control, host, link, presence):
    control.announce(link)
    assert presence.connected(host.id)


async def test_a_link_that_serves_and_a_copied_key_are_told_on(control, rows, host, link, terminal):
    await control.serve(link, BOOT, report(), {BOOT})
    await control.disable(host.id, 1)
    assert terminal.told == [("serve", link, BOOT, report().sessions, {BOOT}), ("unpaired", host.id, "host_disabled")]
    assert (await stored(rows, host)).state is HostState.DISABLED


async def test_heartbeats_need_no_database(control, rows, host, link, presence, clock):
    rows.away = True
    clock.advance(1000)
    assert control.alive(link), "it is time to write that the host was seen"
    clock.advance(LAST_SEEN_S - 1)
    assert not control.alive(link)
    clock.advance(1)
    assert control.alive(link)
    assert presence.connected(host.id)


async def test_a_host_that_was_seen_is_noted(control, rows, host):
    await rows.run("UPDATE hosts SET last_seen_at = NULL WHERE id = :id", id=host.id)
    await control.note_seen(host.id)
    assert (await stored(rows, host)).last_seen_at is not None


async def test_sessions_are_the_terminals(control, link, terminal):
    await control.session(link, HostSessionStarted(session_id=SESSION))
    await control.session(link, HostSessionEnded(session_id=SESSION, reason="process_exited", exit_status=3))
    await control.session(link, HostSessionEnded(session_id=SESSION, reason="refused"))
    assert terminal.told == [
        ("started", link, SESSION),
        ("ended", link, SESSION, "process_exited", 3),
        ("ended", link, SESSION, "refused", None),
    ]


async def test_a_link_that_left_is_gone(control, host, link, presence):
    control.alive(link)
    assert presence.connected(host.id)
    control.left(link)
    assert not presence.connected(host.id)


async def test_why_a_connection_goes_is_read_from_the_row(control, rows):
    active, pending = await rows.host(), await rows.host(state=HostState.PENDING)
    disabled = await rows.host(state=HostState.DISABLED)
    assert await control.refusal(active.id, 1) is None
    assert await control.refusal(active.id, 0) is CloseCode.HOST_REPAIRED
    assert await control.refusal(pending.id, 1) is None
    assert await control.refusal(disabled.id, 1) is CloseCode.HOST_DISABLED
    assert await control.refusal(UUID(int=1), 1) is CloseCode.HOST_REPAIRED
