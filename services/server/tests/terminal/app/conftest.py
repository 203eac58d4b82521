"""What the terminal's use cases share: the links of a node, and its view of who is connected."""

import pytest

from bothy_kit.recorded import RecordedSignals
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.presence import Presence
from bothy_server.hosts.domain.presence import PresenceLimits


@pytest.fixture
def links():
    return ControlLinks()


@pytest.fixture
def presence(links, clock):
    return Presence(links, RecordedSignals(), clock, PresenceLimits(heartbeat_interval=10, miss_limit=3))


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
