"""What a node makes of the terminal's signals: the rows decide, and a node without the host only expects."""

import asyncio
from uuid import uuid4

import pytest

from bothy_kit.recorded import RecordedSide
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_server.terminal.app.ports import SessionStore
from bothy_server.terminal.app.session_signals import SessionSignals
from bothy_server.terminal.app.switchboard import Bounds, Switchboard
from bothy_server.terminal.app.traffic import Traffic, TrafficLimits
from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity
from bothy_server.terminal.domain.rendezvous import Limits
from bothy_server.terminal.domain.session import SessionState
from bothy_server.terminal.domain.signals import SessionOpen, SessionPaired
from bothy_wire.frames import HostSessionClose, HostSessionOpen

OPENING, ACTIVE, DETACHED, CLOSED = SessionState
LIMITS = Limits(open_timeout=20, start_timeout=30, redial_after=0.5, stall_timeout=120)


class Surroundings:
    """What a switchboard needs beside the rows: pairs are joined by nobody, lone sides are counted."""

    last_current_at = None

    def __init__(self):
        self.joined = []
        self.counted = []

    def join(self, one, other):
        self.joined.append({one, other})

    def part(self, one, other):
        pass

    def unpaired(self, side):
        self.counted.append(side)


class Node:
    """One node's part of the terminal, and its links."""

    def __init__(self, rows, tokens, tasks):
        self.rows = rows
        self.links = ControlLinks()
        self.around = Surroundings()
        self.switchboard = Switchboard(
            uow=rows.uow,
            tokens=tokens,
            clock=rows.clock,
            pump=self.around,
            control_links=self.links,
            signals=rows.signals,
            telemetry=self.around,
            limits=LIMITS,
            bounds=Bounds(pending=10, expectations=10),
            storage_retry=2,
            earlier=EarlierDecision(self.around, rows.clock, 600),
            traffic=Traffic(rows.uow, rows.clock, TrafficLimits(60, 2)),
            tasks=tasks,
        )
        hosts = HostSessions(rows.uow, self.links)
        self.signals = SessionSignals(rows.uow, self.switchboard, hosts, self.links)

    def control(self, host):
        """A control connection of the host comes here."""
        link = self.rows.link(host.id)
        self.links.register(link)
        self.links.admit(link)
        return link

    def arrive(self, session, identity):
        side = RecordedSide(self.switchboard)
        self.switchboard.arrived(session.id, side, identity)
        return side

    def expects(self, session):
        return self.switchboard.has(session.id)

    async def hear(self, session, kind=SessionOpen, host_id=None):
        await self.signals.handle([kind(host_id or session.host_id, session.id)])


@pytest.fixture
async def new_node(rows, tokens):
    nodes = []
    async with asyncio.TaskGroup() as tasks:
        yield lambda: nodes.append(Node(rows, tokens, tasks)) or nodes[-1]
        for node in nodes:
            node.switchboard.stop()


@pytest.fixture
async def lab(rows):
    device = await rows.device()
    return device, await rows.host(device)


async def settled():
    """Until what is under way, and what follows from it, has come to its end."""
    await asyncio.sleep(0)
    while under_way := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(under_way)
        await asyncio.sleep(0)


async def test_handle_signal_session_open_expects_on_every_node(rows, lab, new_node):
    without, holding = new_node(), new_node()
    link = holding.control(lab[1])
    session = await rows.session(*lab)
    for node in (without, holding):
        await node.hear(session)
    assert without.expects(session)
    assert holding.expects(session)
    (frame,) = link.took(HostSessionOpen)
    assert (frame.session_id, frame.profile, frame.session_user) == (session.id, "shell", "alex-shell")


@pytest.mark.parametrize("state", [ACTIVE, DETACHED])
async def test_a_running_session_is_expected_and_its_host_is_not_asked(rows, lab, new_node, state):
    node = new_node()
    link = node.control(lab[1])
    session = await rows.session(*lab, state)
    side = node.arrive(session, HostIdentity(lab[1].id, bytes(32), 1))
    await node.hear(session)
    await settled()
    assert node.expects(session)
    assert link.sent == []
    assert side.closed is None


async def test_handle_signal_session_open_of_a_closed_session_tells_its_host_and_registers_nothing(rows, lab, new_node):
    node = new_node()
    link = node.control(lab[1])
    session = await rows.session(*lab, CLOSED)
    await node.hear(session)
    assert not node.expects(session)
    (frame,) = link.took(HostSessionClose)
    assert frame.session_id == session.id
    assert link.sent == []


async def test_handle_signal_session_open_that_the_row_does_not_bear_out_registers_nothing(rows, lab, new_node):
    node = new_node()
    link = node.control(lab[1])
    other = await rows.session(lab[0], await rows.host(lab[0]))
    await node.hear(other, host_id=lab[1].id)
    await node.signals.handle([SessionOpen(lab[1].id, uuid4())])
    assert not node.expects(other)
    assert node.switchboard.registered() == set()
    assert link.sent == []


async def test_the_sides_of_an_expected_session_pair(rows, lab, new_node):
    node = new_node()
    session = await rows.session(*lab)
    await node.hear(session)
    data = node.arrive(session, HostIdentity(lab[1].id, bytes(32), 1))
    client = node.arrive(session, DeviceIdentity(lab[0].id, 1, bytes(32)))
    await settled()
    assert node.around.joined == [{data, client}]


async def test_a_newer_attach_sends_the_older_device_away_and_leaves_the_host(rows, lab, new_node):
    node = new_node()
    session = await rows.session(*lab)
    data = node.arrive(session, HostIdentity(lab[1].id, bytes(32), 1))
    client = node.arrive(session, DeviceIdentity(lab[0].id, 1, bytes(32)))
    await settled()
    async with rows.uow() as unit:
        await unit.of(SessionStore).attach(session.id, lab[0].id)
    await node.hear(session)
    await settled()
    assert client.closed[0] == 4103
    assert data.closed is None


@pytest.mark.parametrize(
    ("local_confirm", "marked", "state"), [(True, True, OPENING), (True, False, CLOSED), (False, True, CLOSED)]
)
async def test_an_expectation_that_nobody_met_ends_the_opening(rows, new_node, local_confirm, marked, state):
    """But on a host that asks its person first, where the sides met elsewhere."""
    node, device = new_node(), await rows.device()
    session = await rows.session(device, await rows.host(device, local_confirm=local_confirm))
    await node.hear(session)
    if marked:
        await node.hear(session, SessionPaired)
    rows.clock.advance(LIMITS.open_timeout)
    await settled()
    assert not node.expects(session)
    record = await rows.record(session.id)
    assert record.state is state
    if state is CLOSED:
        assert (record.close_reason, record.close_detail) == ("open_failed", "open_timeout")
        assert await rows.audit(session_id=session.id) == [("terminal.terminate", "open_timeout")]


async def test_an_expectation_ends_nothing_that_met_elsewhere(rows, lab, new_node):
    node = new_node()
    session = await rows.session(*lab)
    await node.hear(session)
    async with rows.uow() as unit:
        await unit.of(SessionStore).pair(session.id, 1)
    rows.clock.advance(LIMITS.open_timeout)
    await settled()
    assert not node.expects(session)
    assert (await rows.record(session.id)).state is OPENING


async def test_session_paired_is_told_once_a_pairing_where_the_host_asks_its_person(rows, new_node):
    node, device = new_node(), await rows.device()
    host = await rows.host(device, local_confirm=True)
    session = await rows.session(device, host)
    node.arrive(session, HostIdentity(host.id, bytes(32), 1))
    node.arrive(session, DeviceIdentity(device.id, 1, bytes(32)))
    await settled()
    assert rows.signals.sent == [SessionPaired(host.id, session.id)]
