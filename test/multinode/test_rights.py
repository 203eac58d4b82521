"""Rights on a host hold on every node: a confirmation counts once, an end by time comes by itself, operating gains nothing."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import pytest_asyncio

from bothy_kit.cluster import cluster
from bothy_kit.fake_device import FakeDevice
from bothy_kit.sockets import Closed
from bothy_server import wiring
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.settings import Settings
from bothy_wire.frames import HostSessionClose, HostSessionOpen, HostSessionRecorded, SidePaired

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUNDS = 20
REVOKED = Closed(4100, "revoked")
Asked = tuple[FakeDevice, str, dict[str, Any]]
"""Who posts what to which path."""
MANY = {"max_sessions_per_person": 500, "max_sessions_per_host": 500, "open_rate": "5000 per minute"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(shared_database_url, tmp_path_factory):
    """Two nodes that sweep by themselves once in an hour, and a worker that does no more often than that."""
    groups = {"terminal": MANY | {"sweep_interval": "1 h"}, "server": {"role": "api"}}
    async with (
        cluster(shared_database_url, tmp_path_factory.mktemp("two"), nodes=2, **groups) as running,
        worker(running),
    ):
        yield running


@asynccontextmanager
async def worker(made):
    """A process of its own settings beside the nodes."""
    groups = made.settings.model_dump()
    groups["server"]["role"] = "worker"
    async with Lifecycle() as parts:
        await wiring.start_worker(Settings.model_validate(groups), parts)
        yield


@pytest_asyncio.fixture(loop_scope="module")
async def couple(two):
    """An owner, and their host with its control connection on the second node."""
    owner, host = await two.couple()
    await host.connect(two.nodes[1].url)
    return owner, host


async def person(two):
    """The name and a device of somebody new."""
    name = f"Sam-{uuid4().hex[:8]}"
    return name, await two.device(name)


async def at_once(two, *asked: Asked):
    """What the first node says to the first request and the second to the second, both under way together."""
    answers = await asyncio.gather(
        *(
            device.rest("POST", path, body, url=node.url)
            for node, (device, path, body) in zip(two.nodes, asked, strict=True)
        )
    )
    return sorted((each.status, each.code if each.status >= 400 else "") for each in answers)


# ---- a confirmation counts once -------------------------------------------------------------------------------------


async def test_two_opens_with_one_confirmation_on_two_nodes_give_one_session(two, couple):
    owner, host = couple
    for round_ in range(ROUNDS):
        body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
        body["step_up_id"] = await owner.step_up("open", host.host_id, "shell", "alex-shell")
        asked = (owner, "/terminal/sessions", body)
        assert await at_once(two, asked, asked) == [(201, ""), (401, "step_up_required")], round_
    opened = await two.sql("SELECT count(*) FROM terminal_sessions WHERE host_id = %s", host.host_id)
    assert opened == [(ROUNDS,)]


async def test_one_confirmation_attaches_one_of_two_sessions_on_two_nodes(two):
    """An attach names host, profile and user; the device that holds a session needs none."""
    name, holder = await person(two)
    other, host = await two.another_device(name), await two.host(f"lab-of-{name}", name)
    await host.connect(two.nodes[1].url)
    for round_ in range(ROUNDS):
        sessions = [await holder.open(host.host_id) for _ in two.nodes]
        step_up_id = await other.step_up("attach", host.host_id, "shell", "alex-shell")
        asked = [
            (other, f"/terminal/sessions/{each.session_id}/attach", {"step_up_id": step_up_id}) for each in sessions
        ]
        assert await at_once(two, *asked) == [(200, ""), (401, "step_up_required")], round_


class Acts:
    """Acts of management on one host, each as path and body, that change something every time."""

    def __init__(self, two, owner, host, guest) -> None:
        self.two, self.owner, self.host, self.guest = two, owner, host, guest
        self._numbers = itertools.count()

    async def code(self):
        return "/pairing-codes", {}

    async def rename(self):
        return "/rename", {"name": f"lab-{uuid4().hex[:8]}"}

    async def give(self):
        return "/grants", {"person": self.guest, "session_user": f"user-{next(self._numbers)}"}

    async def take(self):
        path, body = await self.give()
        assert (await self.owner.manage(path, body, host_id=self.host.host_id)).status == 200
        return f"{path}/revoke", body

    async def own(self):
        return "/owners", {"person": (await person(self.two))[0]}

    async def disown(self):
        path, body = await self.own()
        assert (await self.owner.manage(path, body, host_id=self.host.host_id)).status == 200
        return f"{path}/remove", body


@pytest.mark.parametrize("act", ["code", "rename", "give", "take", "own", "disown"])
async def test_one_confirmation_is_one_act_of_management_on_two_nodes(two, couple, act):
    """The other one is a grant: whichever comes first, one is done and one is not."""
    owner, host = couple
    acts = Acts(two, owner, host, (await person(two))[0])
    for round_ in range(ROUNDS):
        one, other = await getattr(acts, act)(), await acts.give()
        step_up_id = await owner.step_up("manage_host", host.host_id)
        at = f"/hosts/{host.host_id}"
        asked = [(owner, at + path, body | {"step_up_id": step_up_id}) for path, body in (one, other)]
        (done, _), refused = await at_once(two, *asked)
        assert done in {200, 201}, round_
        assert refused == (401, "step_up_required"), round_


async def test_one_confirmation_moves_a_host_once_on_two_nodes(two):
    owner, host = await two.couple()
    for round_ in range(ROUNDS):
        step_up_id = await owner.step_up("manage_host", host.host_id)
        body = {"state": ("disabled", "active")[round_ % 2], "step_up_id": step_up_id}
        naming = {"name": f"lab-{uuid4().hex[:8]}", "step_up_id": step_up_id}
        answers = await at_once(
            two, (owner, f"/hosts/{host.host_id}/state", body), (owner, f"/hosts/{host.host_id}/rename", naming)
        )
        assert answers == [(200, ""), (401, "step_up_required")], round_
        await owner.manage("/state", {"state": body["state"]}, host_id=host.host_id)


@pytest.mark.parametrize(
    ("purpose", "path", "body"),
    [
        ("manage_relay", "/hosts", lambda: {"name": f"lab-{uuid4().hex[:8]}"}),
        ("manage_relay", "/persons", lambda: {"name": f"Sam-{uuid4().hex[:8]}", "is_operator": False}),
        ("manage_account", "/devices/invites", dict),
    ],
)
async def test_one_confirmation_is_one_act_elsewhere_on_two_nodes(two, purpose, path, body):
    operator = await two.operator(f"Kim-{uuid4().hex[:8]}")
    for round_ in range(ROUNDS):
        step_up_id = await operator.step_up(purpose)
        asked = [(operator, path, body() | {"step_up_id": step_up_id}) for _ in two.nodes]
        assert await at_once(two, *asked) == [(201, ""), (401, "step_up_required")], round_


async def test_a_confirmation_for_one_host_does_nothing_on_another(two, couple):
    owner, host = couple
    name, _ = await person(two)
    ((mine,),) = await two.sql(
        "SELECT p.name FROM persons p JOIN devices d ON d.person_id = p.id WHERE d.id = %s", owner.device_id
    )
    other = await two.host(f"lab-{uuid4().hex[:8]}", mine)
    await other.connect(two.nodes[0].url)
    foreign = await owner.step_up("manage_host", other.host_id)
    for path, body in (
        ("/owners", {"person": name}),
        ("/grants", {"person": name, "session_user": "alex-shell"}),
        ("/rename", {"name": f"lab-{uuid4().hex[:8]}"}),
        ("/state", {"state": "disabled"}),
        ("/pairing-codes", {}),
    ):
        answer = await owner.rest("POST", f"/hosts/{host.host_id}{path}", body | {"step_up_id": foreign})
        assert (answer.status, answer.code) == (401, "step_up_required"), path
    opening = await owner.step_up("open", other.host_id, "shell", "alex-shell")
    wanted = {"profile": "shell", "session_user": "alex-shell", "step_up_id": opening}
    refused = await owner.rest("POST", "/terminal/sessions", wanted | {"host_id": str(host.host_id)})
    assert (refused.status, refused.code) == (401, "step_up_required")
    assert (await owner.rest("POST", "/terminal/sessions", wanted | {"host_id": str(other.host_id)})).status == 201
    used = await owner.rest("POST", f"/hosts/{other.host_id}/owners", {"person": name, "step_up_id": foreign})
    assert used.status == 200, "none of it was spent"


async def test_a_confirmation_that_is_too_old_does_nothing_on_any_node(two, couple):
    owner, host = couple
    name, _ = await person(two)
    step_ups = [
        await owner.step_up("manage_host", host.host_id),
        await owner.step_up("open", host.host_id, "shell", "alex-shell"),
    ]
    for each in step_ups:
        await two.sql("UPDATE step_ups SET expires_at = now() WHERE id = %s", UUID(each))
    opening = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    for node in two.nodes:
        for path, body in (
            (f"/hosts/{host.host_id}/owners", {"person": name, "step_up_id": step_ups[0]}),
            ("/terminal/sessions", opening | {"step_up_id": step_ups[1]}),
        ):
            answer = await owner.rest("POST", path, body, url=node.url)
            assert (answer.status, answer.code) == (401, "step_up_required")


async def test_a_confirmation_is_not_spent_by_what_is_refused_for_another_reason(two):
    owner, host = await two.couple()
    body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    body["step_up_id"] = await owner.step_up("open", host.host_id, "shell", "alex-shell")
    assert (await owner.rest("POST", "/terminal/sessions", body)).code == "host_unavailable"
    await host.connect(two.nodes[1].url)

    async def opened():
        return await owner.rest("POST", "/terminal/sessions", body, url=two.nodes[1].url)

    assert (await opened()).status == 201
    managing_ = await owner.step_up("manage_host", host.host_id)
    at = f"/hosts/{host.host_id}"
    for path, wanted, code in (
        ("/owners/remove", {"person": "Nobody"}, "owner_unknown"),
        ("/grants", {"person": "Nobody", "session_user": "alex-shell"}, "person_unknown"),
        ("/rename", {"name": "\u00e9" * 33}, "name_invalid"),
    ):
        answer = await owner.rest("POST", at + path, wanted | {"step_up_id": managing_}, url=two.nodes[1].url)
        assert answer.code == code
    state = {"state": "disabled", "step_up_id": managing_}
    assert (await owner.rest("POST", f"{at}/state", state)).status == 200


# ---- a right that ends by time --------------------------------------------------------------------------------------


async def run(two, device, host, url):
    """A session that runs, both sides at ``url``."""
    stream = await device.open(host.host_id)
    while (await host.control.expect(HostSessionOpen)).session_id != stream.session_id:
        pass
    client, data = await device.dial(stream, url), await host.dial(stream.session_id, url)
    for side in (client, data):
        await side.expect(SidePaired)
    await host.started(stream.session_id)
    await host.control.expect(HostSessionRecorded)
    return stream, client, data


async def test_a_grant_that_ends_by_time_ends_its_sessions_on_every_node(two, couple):
    """The worker sleeps for an hour, and was asleep when the grant was given."""
    owner, host = couple
    name, guest = await person(two)
    wanted = {"person": name, "session_user": "alex-shell"}
    assert (await owner.manage("/grants", wanted, host_id=host.host_id)).status == 200
    sessions = [await run(two, guest, host, node.url) for node in two.nodes]
    of_owner, client, data = await run(two, owner, host, two.nodes[0].url)

    until = datetime.now(UTC) + timedelta(seconds=4)
    changed = await owner.manage("/grants", wanted | {"expires_at": until.isoformat()}, host_id=host.host_id)
    assert changed.status == 200

    sides = [side for _, *both in sessions for side in both]
    assert await asyncio.gather(*(side.closed() for side in sides)) == [REVOKED] * 4
    ended = {(await host.control.expect(HostSessionClose)).session_id for _ in sessions}
    assert ended == {stream.session_id for stream, *_ in sessions}
    ids = [stream.session_id for stream, *_ in sessions]
    lateness = await two.sql(
        "SELECT extract(epoch FROM closed_at - %s) FROM terminal_sessions WHERE id = ANY(%s)", until, ids
    )
    assert all(late >= 0 for (late,) in lateness)
    for node in two.nodes:
        refused = await guest.rest("POST", "/step-up/challenges", opening(host), url=node.url)
        assert (refused.status, refused.code) == (404, "host_unknown")
        assert (await guest.rest("GET", f"/hosts/{host.host_id}", url=node.url)).code == "host_unknown"
    await client.send(b"to the host")
    assert await data.receive() == b"to the host"
    assert (await owner.state(of_owner.session_id))["state"] == "active"


def opening(host):
    named = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
    return {"purpose": "open", **named}


async def test_open_attach_and_every_pairing_ask_for_the_right_at_that_moment(two, couple):
    """It ended a moment ago, and nobody has ended a session yet."""
    owner, host = couple
    name, guest = await person(two)
    wanted = {"person": name, "session_user": "alex-shell"}
    await owner.manage("/grants", wanted, host_id=host.host_id)
    step_up_id = await guest.step_up("open", host.host_id, "shell", "alex-shell")
    attaching, waiting = await guest.open(host.host_id), await guest.open(host.host_id)
    lone = await guest.dial(waiting, two.nodes[0].url)
    async with no_sweep(two):
        await two.sql("UPDATE host_grants SET expires_at = now() WHERE host_id = %s", host.host_id)
        body = {"host_id": str(host.host_id), "profile": "shell", "session_user": "alex-shell"}
        for node in two.nodes:
            opened = await guest.rest("POST", "/terminal/sessions", body | {"step_up_id": step_up_id}, url=node.url)
            assert (opened.status, opened.code) == (404, "host_unknown")
            path = f"/terminal/sessions/{attaching.session_id}/attach"
            attached = await guest.rest("POST", path, {"step_up_id": None}, url=node.url)
            assert (attached.status, attached.code) == (404, "host_unknown")
        data = await host.dial(waiting.session_id, two.nodes[0].url)
        assert (await lone.closed(), await data.closed()) == (REVOKED, REVOKED)
    assert (await guest.state(waiting.session_id))["close_reason"] == "revoked"


@asynccontextmanager
async def no_sweep(two):
    """Somebody else is in the middle of a round, so that no other one begins."""
    lock = int.from_bytes(b"bothyswp")
    url = two.settings.database.url.get_secret_value()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
        yield
