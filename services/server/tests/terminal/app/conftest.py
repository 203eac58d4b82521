"""What the terminal's use cases share: the links of a node, and its view of who is connected."""

import asyncio

import pytest

from bothy_kit.recorded import RecordedSide, RecordedSignals
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import PresenceLimits
from bothy_server.terminal.app.earlier_decision import EarlierDecision
from bothy_server.terminal.app.switchboard import Bounds, Switchboard
from bothy_server.terminal.app.traffic import Traffic, TrafficLimits
from bothy_server.terminal.domain import rendezvous as rule
from bothy_server.terminal.domain.admission import DeviceIdentity, HostIdentity
from bothy_wire.frames import SideAccepted, encode


@pytest.fixture
def links():
    return ControlLinks()


@pytest.fixture
def presence(links, clock):
    return Presence(links, RecordedSignals(), clock, PresenceLimits(heartbeat_interval=10, miss_limit=3), 0.25)


@pytest.fixture
async def device(rows):
    return await rows.device()


@pytest.fixture
async def host(rows, device):
    """The device's person owns it; nobody is connected."""
    return await rows.host(device)


@pytest.fixture
def link(rows, links, presence, host):
    """The host's control connection, eligible, on this node."""
    link = rows.link(host.id)
    links.register(link)
    links.admit(link)
    presence.alive(link)
    return link


LIMITS = rule.Limits(open_timeout=20, start_timeout=30, redial_after=0.5, stall_timeout=120)
STORAGE_RETRY_S = 2
STALE_RIGHT_S = 600


async def until(holds):
    """Let the reads and writes under way go on until something holds that nobody announces."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)


class RecordedPump:
    """Implements ``Pump``. ``broken`` makes every join a defect."""

    def __init__(self):
        self.joined = []
        self.parted = []
        self.broken = False

    def join(self, one, other):
        if self.broken:
            raise ZeroDivisionError("a defect of ours")
        self.joined.append({one, other})

    def part(self, one, other):
        self.parted.append((one, other))


class RecordedNews:
    """Implements ``News``: nothing was ever heard."""

    last_current_at = None


class Board:
    """A switchboard in a test's hands: real rows, recorded sides, time that the test moves."""

    def __init__(self, rows, tokens, links, tasks, bounds):
        self.rows = rows
        self.signals = RecordedSignals()
        self.pump = RecordedPump()
        self.counted = []
        self.news = RecordedNews()
        self.traffic = Traffic(rows.uow, rows.clock, TrafficLimits(interval=60, retry=2))
        self.switchboard = Switchboard(
            uow=rows.uow,
            tokens=tokens,
            clock=rows.clock,
            pump=self.pump,
            control_links=links,
            signals=self.signals,
            telemetry=self,
            limits=LIMITS,
            bounds=bounds,
            storage_retry=STORAGE_RETRY_S,
            earlier=EarlierDecision(self.news, rows.clock, STALE_RIGHT_S),
            traffic=self.traffic,
            tasks=tasks,
        )

    def unpaired(self, side):
        """See the port ``Telemetry``."""
        self.counted.append(side)

    def device(self, session, attach_seq=1, *, device_id=None):
        """A device side that proved itself."""
        return self._arrived(session, DeviceIdentity(device_id or session.device_id, attach_seq, b"c" * 32))

    def host(self, session, *, host_id=None):
        """A host side that proved itself."""
        return self._arrived(session, HostIdentity(host_id or session.host_id, b"s" * 32, 1))

    def _arrived(self, session, identity):
        side = RecordedSide(self.switchboard)
        self.switchboard.arrived(session.id, side, identity)
        return side

    async def pair(self, session, attach_seq=1):
        """Both sides, joined."""
        device, host = self.device(session, attach_seq), self.host(session)
        await until(lambda: {device, host} in self.pump.joined)
        return device, host

    async def accepted(self, side):
        """The side's row was read, and it stays."""
        await until(lambda: side.told)
        assert side.told == [encode(SideAccepted())]
        return side

    async def closed(self, side):
        """Code and reason."""
        await until(lambda: side.closed is not None)
        return side.closed

    until = staticmethod(until)

    async def row(self, session, state, reason=None, detail=None):
        """Wait until the session's row is in this state."""
        async with asyncio.timeout(10):
            while (record := await self.rows.record(session.id)).state is not state:  # noqa: ASYNC110 - see ``until``
                await asyncio.sleep(0.001)
        assert (record.close_reason, record.close_detail) == (reason, detail)
        return record


@pytest.fixture
async def tasks():
    """A task group for as long as the test runs."""
    opened = asyncio.get_running_loop().create_future()

    async def hold():
        async with asyncio.TaskGroup() as group:
            opened.set_result(group)
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    yield await opened
    holder.cancel()
    await asyncio.wait([holder])


@pytest.fixture
def new_board(rows, tokens, links, tasks):
    """Another node's, or one with other bounds."""

    def make(pending=100, expectations=100):
        return Board(rows, tokens, links, tasks, Bounds(pending, expectations))

    return make


@pytest.fixture
def board(new_board):
    return new_board()


@pytest.fixture
def turns():
    """See ``until``."""
    return until
