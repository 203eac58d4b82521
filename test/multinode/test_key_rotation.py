"""The signing keys change while persons log in, open, work and come back, and hosts are paired: nothing of it fails."""

import asyncio
import itertools
import json
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx2 as httpx
from joserfc import jws

from bothy_host.tokens import Presented, TokenDesk
from bothy_kit.cluster import ORIGIN, cluster, start
from bothy_kit.eventually import eventually
from bothy_kit.serving import BOTHY_SERVER
from bothy_server.doctor.examination import Examination
from bothy_server.identity.adapters.keystore.store import add_key, load_keys
from bothy_wire.frames import HostKeys, HostSessionOpen, ReportedSession, SidePaired, SideUnpaired

LEAD, RELOAD = timedelta(seconds=1), timedelta(seconds=0.5)
PAUSE_S = 0.1
"""Between two rounds of the same: people who never rest take the processors from what they wait for."""
QUICK = {
    "secrets": {"key_publish_lead": LEAD.total_seconds(), "reload_interval": RELOAD.total_seconds()},
    "cluster": {"status_interval": 1},
    "terminal": {"open_rate": "1000 per second", "host_heartbeat_interval": 600},
    "identity": {"address_rate": "10000 per second"},
}


# ---- the scene ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def two(database_url, tmp_path, *, copies=False):
    """Two nodes: on one folder of keys, or each with its own copy."""
    last_week = datetime.now(UTC) - timedelta(days=7)
    add_key(tmp_path / "keys", last_week, last_week)
    folders = [tmp_path / "keys"] * 2
    if copies:
        folders[1] = tmp_path / "copy"
        shutil.copytree(*folders)
    theirs = iter(folders)

    async def start_with_keys(settings):
        there = settings.secrets.model_copy(update={"signing_key_dir": next(theirs)})
        return await start(settings.model_copy(update={"secrets": there}))

    async with cluster(database_url, tmp_path, start=start_with_keys, **QUICK) as running:
        yield Scene(running, folders)


@dataclass
class Scene:
    """Two nodes, the folders of their keys, and the command that changes them."""

    running: object
    folders: list

    @property
    def urls(self):
        return [each.url for each in self.running.nodes]

    async def keys(self, *words: str, at=0, said=None):
        """``bothy-server keys ...`` on the machine of a node, in a process of its own; what it says."""
        settings = self.running.settings
        own = {
            "BOTHY_SECRETS__SIGNING_KEY_DIR": str(self.folders[at]),
            "BOTHY_SECRETS__KEY_PUBLISH_LEAD": f"{LEAD.total_seconds()} s",
            "BOTHY_SECRETS__RELOAD_INTERVAL": f"{RELOAD.total_seconds()} s",
            "BOTHY_CLUSTER__STATUS_INTERVAL": "1 s",
            "BOTHY_DATABASE__URL": settings.database.url.get_secret_value(),
            "BOTHY_SERVER__PUBLIC_ORIGINS": ORIGIN,
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BOTHY_")}
        piped = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        command = await asyncio.create_subprocess_exec(*BOTHY_SERVER, "keys", *words, env=inherited | own, **piped)
        out, err = await command.communicate(None if said is None else said.encode())
        return command.returncode, out.decode(), err.decode()

    async def done(self, *words: str, at=0, said=None):
        """The same, which must succeed."""
        status, out, err = await self.keys(*words, at=at, said=said)
        assert status == 0, err
        return out

    async def rotate(self, at=0):
        """The key that signs, and the one that comes."""
        old = self.kids(at)[0]
        made = json.loads(await self.done("rotate", "--json", at=at))
        assert made["nodes_told"]
        return old, made["made"]["kid"]

    async def carry(self, source, target):
        """Copy the keys of one machine to the other."""
        await self.done("import", "-", at=target, said=await self.done("export", "-", at=source))

    def kids(self, at=0):
        """The keys in a folder, in the order in which they sign."""
        return [each.kid for each in load_keys(self.folders[at])]

    async def sign_with(self, *kids: str):
        """Each node signs with its key, and has told the others so."""

        async def holds():
            told = await self.running.sql("SELECT node_id, signs_with FROM node_status")
            return [dict(told)[each.node.id] for each in self.running.nodes] == list(kids)

        await eventually(holds)

    async def readyz(self, at):
        async with httpx.AsyncClient(trust_env=False) as rest:
            answer = await rest.get(f"http://{self.running.nodes[at].node.internal}/readyz")
        assert answer.status_code == 200
        return answer.json()["checks"]["keys"]

    async def published(self, at):
        async with httpx.AsyncClient(trust_env=False) as rest:
            answer = await rest.get(f"{self.urls[at]}/.well-known/jwks.json")
        return answer.json()

    async def due(self, kid):
        """The time has come at which the key is to sign, by its file."""
        (key,) = [each for folder in self.folders for each in load_keys(folder) if each.kid == kid][:1]
        await eventually(lambda: datetime.now(UTC) >= key.signs_from)


# ---- what goes on all the time --------------------------------------------------------------------------------------


@dataclass
class Life:
    """Persons and hosts at work. The first thing that fails ends the test."""

    scene: Scene
    over: bool = False
    rounds: dict = field(default_factory=dict)
    used: dict = field(default_factory=dict)
    """The keys that access tokens were signed with, and when the first one was made."""

    @property
    def kids(self):
        return set(self.used)

    async def goes_on(self):
        """Everybody has done everything again, from its begin to its end."""
        await self._next_end()
        await self._next_end()

    async def _next_end(self):
        before = dict(self.rounds)
        await eventually(lambda: all(self.rounds[name] > done for name, done in before.items()))

    async def repeat(self, name, act):
        """``act`` again and again, at one node and the other, until the block ends."""
        self.rounds[name] = 0
        for here, there in itertools.cycle([self.scene.urls, self.scene.urls[::-1]]):
            await act(here, there)
            self.rounds[name] += 1
            if self.over:
                return
            await asyncio.sleep(PAUSE_S)

    async def log_in(self, device, here):
        device.url = here
        assert (await device.login()).status == 200
        token = jws.extract_compact(device.access_token.encode())
        made_at = datetime.fromtimestamp(json.loads(token.payload)["iat"], UTC)
        self.used.setdefault(token.protected["kid"], made_at)


@asynccontextmanager
async def life(scene):
    """Logins, openings, attaches, pairings of hosts and a session that is resumed, until the block ends."""
    going = Life(scene)
    async with asyncio.TaskGroup() as people:
        for act in (logins, openings, resumptions, pairings):
            people.create_task(going.repeat(act.__name__, await act(going)))
        await going.goes_on()
        yield going
        going.over = True


async def logins(going):
    device = await going.scene.running.device("Robin")

    async def act(here, there):
        await going.log_in(device, here)
        assert (await device.rest("GET", "/hosts", url=there)).status == 200

    return act


async def openings(going):
    device, host, desk = await couple(going)

    async def act(here, there):
        await going.log_in(device, here)
        stream = await device.open(host.host_id, url=there)
        await host.control.expect(HostSessionOpen)
        client, data = await meet(going, device, host, stream, desk)
        await host.ended(stream.session_id)
        assert (await client.closed()).code == (await data.closed()).code == 4100

    return act


async def resumptions(going):
    device, host, desk = await couple(going)
    first = await device.open(host.host_id)
    client, data = await meet(going, device, host, first, desk)
    await host.started(first.session_id)
    host.sessions.append(ReportedSession(session_id=first.session_id, phase="running", attached=True))
    sides = [client, data]

    async def act(here, there):
        await passes(*sides)
        sides[0].cut()
        await sides[1].expect(SideUnpaired)
        await sides[1].ready()
        await going.log_in(device, here)
        stream = await device.attach(first.session_id, url=there)
        sides[0] = await device.dial(stream, going.scene.running.url_of(first.session_id, "device"))
        await verified(device, host, desk, stream, await sides[0].expect(SidePaired))
        await sides[1].expect(SidePaired)

    return act


async def pairings(going):
    number = itertools.count()
    await going.scene.running.device("Sam")

    async def act(here, there):
        host = await going.scene.running.host(f"new-{next(number)}", "Sam", url=here)
        await host.connect(here)
        await host.connect(there)  # where the join value of the other node is read
        await host.control.close()

    return act


async def couple(going):
    device, host = await going.scene.running.couple()
    await host.connect()
    jwks = itertools.cycle(range(2))

    async def fetch():
        return await going.scene.published(next(jwks))

    desk = TokenDesk(host_id=host.host_id, leeway=5, fetch_interval=60, retry_interval=1, fetch=fetch)
    desk.take_keys(await fetch())
    return device, host, desk


async def meet(going, device, host, stream, desk):
    """Both sides of the session, which the host lets in."""
    running = going.scene.running
    client = await device.dial(stream, running.url_of(stream.session_id, "device"))
    data = await host.dial(stream.session_id, running.url_of(stream.session_id, "host"))
    await verified(device, host, desk, stream, await client.expect(SidePaired))
    await data.expect(SidePaired)
    await passes(client, data)
    return client, data


async def verified(device, host, desk, stream, paired):
    """The host takes the session token, by the keys that it was told."""
    for frame in host.control.kept:
        if isinstance(frame, HostKeys):
            desk.take_keys(frame.jwks)
    device_key = device.channel_key.public_key().public_bytes_raw()
    now = datetime.now(UTC).timestamp()
    await desk.spend(Presented(paired.session_token, stream.session_id, device_key, now))


async def passes(client, data):
    for one, other in ((client, data), (data, client)):
        await one.send(b"typed")
        assert await other.receive() == b"typed"


# ---- the rehearsal --------------------------------------------------------------------------------------------------


async def test_a_rotation_costs_no_login_and_no_session(database_url, tmp_path):
    async with two(database_url, tmp_path) as scene, life(scene) as going:
        veteran = await scene.running.device("Alex")
        begun = datetime.now(UTC)
        old, new = await scene.rotate()
        for at in (0, 1):
            await eventually(lambda at=at: publishes(scene, at, new))
        await scene.sign_with(new, new)
        await going.goes_on()
        assert going.kids == {old, new}
        assert going.used[new] - begun >= LEAD, "published before it signed"
        await scene.done("retire", old)
        await going.goes_on()
        for url in scene.urls:
            assert (await veteran.rest("GET", "/hosts", url=url)).status == 200, "its token lives as long as it said"

        await scene.done("retire", "--now", old)
        for at, url in enumerate(scene.urls):
            await eventually(lambda at=at: dies(scene, at, old))
            assert (await veteran.rest("GET", "/hosts", url=url)).status == 401
        assert (await veteran.login()).status == 200
        for at in (0, 1):
            await eventually(lambda at=at: content(scene, at))


async def content(scene, at):
    """What a node knows of another's keys is as old as that one's last word."""
    return await scene.readyz(at) == "ok"


async def publishes(scene, at, kid):
    return kid in {key["kid"] for key in (await scene.published(at))["keys"]}


async def dies(scene, at, kid):
    return not await publishes(scene, at, kid)


async def test_a_rotation_with_copies_in_time_costs_nothing(database_url, tmp_path):
    async with two(database_url, tmp_path, copies=True) as scene, life(scene) as going:
        old, new = await scene.rotate()
        await scene.carry(0, 1)
        await scene.sign_with(new, new)
        await going.goes_on()
        assert going.kids == {old, new}
        await scene.done("retire", old)


# ---- what people do wrong -------------------------------------------------------------------------------------------


async def test_a_copy_that_was_forgotten_holds_the_new_key_back_and_is_told(database_url, tmp_path):
    async with two(database_url, tmp_path, copies=True) as scene, life(scene) as going:
        old, new = await scene.rotate()
        await scene.due(new)
        await going.goes_on()
        assert going.kids == {old}
        first, second = (each.node.id for each in scene.running.nodes)
        assert await scene.readyz(0) == (
            f"node {second} lacks {new}; {new} should sign by now and waits: not everywhere"
        )
        assert await scene.readyz(1) == f"node {first} has {new}, which is not here"
        (found,) = [
            each for each in await Examination(scene.running.settings, None, None).run() if each.check == "node_keys"
        ]
        assert (found.verdict, found.seen) == ("failed", f"node {second} lacks {new}")
        status, _, said = await scene.keys("retire", old)
        assert status == 1
        assert f"node {first}, {second} signs with it" in said or f"node {second}, {first} signs with it" in said

        await scene.carry(0, 1)
        await scene.sign_with(new, new)
        await going.goes_on()
        assert going.kids == {old, new}
        for at in (0, 1):
            await eventually(lambda at=at: content(scene, at))


async def test_two_copies_that_were_both_rotated_agree_when_they_have_both_keys(database_url, tmp_path):
    async with two(database_url, tmp_path, copies=True) as scene, life(scene) as going:
        old, one = await scene.rotate(0)
        _, other = await scene.rotate(1)
        await scene.due(other)
        await going.goes_on()
        assert going.kids == {old}
        for source, target in (scene.folders, scene.folders[::-1]):
            shutil.copytree(source, target, dirs_exist_ok=True)  # with nothing that tells the nodes
        await scene.sign_with(other, other)
        await going.goes_on()
        assert going.kids >= {old, other}
        assert scene.kids(0) == scene.kids(1) == [old, one, other]


async def test_a_file_that_was_removed_too_early_is_told_while_nothing_fails(database_url, tmp_path):
    async with two(database_url, tmp_path) as scene, life(scene) as going:
        old, new = await scene.rotate()
        file = scene.folders[0] / f"{old}.json"
        lost = file.read_text()
        file.unlink()
        gone = f"the file of {old} is gone; it is held until this process ends"
        for at in (0, 1):
            await eventually(lambda at=at: tells(scene, at, gone))
        await going.goes_on()
        await scene.sign_with(new, new)
        await going.goes_on()
        assert going.kids == {old, new}
        file.touch(0o600)
        file.write_text(lost)
        for at in (0, 1):
            await eventually(lambda at=at: tells(scene, at, "ok"))


async def tells(scene, at, words):
    return await scene.readyz(at) == words


async def test_a_clock_that_is_behind_makes_no_key_sign_early(database_url, tmp_path):
    async with two(database_url, tmp_path) as scene, life(scene) as going:
        (old,) = scene.kids()
        yesterday = datetime.now(UTC) - timedelta(days=1)
        begun = datetime.now(UTC)
        early = add_key(scene.folders[0], yesterday, yesterday + LEAD).kid
        await scene.sign_with(early, early)
        await going.goes_on()
        assert going.kids == {old, early}
        assert going.used[early] - begun >= LEAD
