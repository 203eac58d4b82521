"""A device that is revoked after its request began decides nothing about a host, although its confirmation is good."""

import pytest

from bothy_kit.cluster import ORIGIN
from bothy_server.hosts.app.control_links import ControlLinks
from bothy_server.hosts.app.naming import Naming
from bothy_server.hosts.app.pairing import Pairing, PairingLimits
from bothy_server.hosts.app.transitions import Transitions
from bothy_server.hosts.domain.host import HostState
from bothy_server.identity.app.api import Act
from bothy_server.kernel.problems import Problem
from bothy_server.terminal.app.host_sessions import HostSessions
from bothy_wire.signing import fingerprint


@pytest.mark.parametrize("act", ["create", "code", "confirm", "state", "rename"])
async def test_a_revoked_device_decides_nothing(rows, tokens, act):
    device = await rows.device(operator=True)
    host = await rows.host(device, state=HostState.PENDING if act == "confirm" else HostState.ACTIVE)
    events = HostSessions(rows.uow, ControlLinks())
    pairing = Pairing(rows.uow, tokens, rows.clock, [ORIGIN], events, PairingLimits(900, "confirm"))
    relay, managing = await rows.confirmed(device, Act("manage_relay")), await rows.managing(device, host.id)
    await rows.run("UPDATE devices SET revoked_at = now() WHERE id = :id", id=device.id)
    before = await rows.content()
    attempts = {
        "create": lambda: pairing.create(rows.name("lab"), str(device.person_id), device.caller, relay),
        "code": lambda: pairing.issue_code(host.id, device.caller, managing),
        "confirm": lambda: pairing.confirm(device.caller, host.id, fingerprint(host.keys.public[1]), managing),
        "state": lambda: Transitions(rows.uow, events).set_state(host.id, HostState.DISABLED, device.caller, managing),
        "rename": lambda: Naming(rows.uow).rename(host.id, rows.name("lab"), device.caller, managing),
    }
    with pytest.raises(Problem) as refused:
        await attempts[act]()
    assert (refused.value.status, refused.value.code) == (401, "token_invalid")
    assert await rows.content() == before
