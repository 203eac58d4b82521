"""A node reads its keys again in time, when told, and when another node shows that there are others; what stays wrong is logged."""

import asyncio
from datetime import timedelta

import pytest

from bothy_kit.eventually import eventually
from bothy_server.identity.adapters.keystore.keeper import KeyKeeper
from bothy_server.identity.adapters.keystore.ring import KeyRing
from bothy_server.identity.adapters.keystore.store import add_key, load_keys, retire_key
from bothy_server.kernel.tail import LoggedEvent
from bothy_server.kernel.unit import Event

LEAD = timedelta(hours=1)
INTERVAL_S = 60


class Kept:
    """A keeper that runs, and how often it said that other keys are published."""

    def __init__(self, folder, clock):
        self.folder, self.clock = folder, clock
        self.first = add_key(folder, clock.now(), clock.now())
        self.ring = KeyRing(folder, clock, LEAD.total_seconds(), leeway=5)
        self.changes = 0
        self.keeper = KeyKeeper(self.ring, clock, INTERVAL_S, self.changed)

    def changed(self):
        self.changes += 1

    def rotate(self):
        return add_key(self.folder, self.clock.now(), self.clock.now() + LEAD)

    async def event(self, kind):
        await self.keeper.on_events([LoggedEvent(1, Event(kind), self.clock.now())])


@pytest.fixture
async def kept(tmp_path, clock):
    kept = Kept(tmp_path / "keys", clock)
    running = asyncio.create_task(kept.keeper.run())
    await clock.wait_for_timer()
    yield kept
    running.cancel()


async def holds(kept, key):
    await eventually(lambda: key.kid in kept.ring.ids)


async def test_the_folder_is_read_every_interval(kept):
    made = kept.rotate()
    kept.clock.advance(INTERVAL_S)
    await holds(kept, made)
    assert kept.changes == 1


async def test_a_change_that_is_told_is_read_at_once(kept):
    made = kept.rotate()
    await kept.event("host.updated")
    await kept.event("keys.changed")
    await holds(kept, made)
    another = kept.rotate()
    await kept.keeper.on_gap()
    await holds(kept, another)
    assert kept.changes == 2


async def test_a_key_of_another_node_is_looked_for_at_once(kept):
    made = kept.rotate()
    kept.keeper.hear({"n2": [kept.first.kid, made.kid]}, {kept.first.kid})
    await holds(kept, made)
    assert kept.keeper.state() == "ok"


async def test_hosts_hear_that_a_key_has_died(kept):
    kept.rotate()
    retire_key(kept.folder, kept.first, kept.clock.now() + timedelta(seconds=INTERVAL_S))
    await kept.event("keys.changed")
    await eventually(lambda: kept.changes == 1)
    await kept.clock.wait_for_timer()
    kept.clock.advance(INTERVAL_S)
    await eventually(lambda: kept.changes == 2)
    assert kept.first.kid not in {each.kid for each in kept.ring.published}


async def test_a_folder_that_became_unreadable_leaves_the_keys_in_use(kept, caplog):
    (kept.folder / "damaged.json").write_text("{")
    await kept.event("keys.changed")
    await eventually(lambda: caplog.messages == ["key store unreadable, the keys in use stay"])
    assert kept.ring.signs == kept.first
    assert kept.changes == 0


async def test_a_key_that_another_node_signs_with_is_missed_once_aloud(kept, caplog):
    for _ in range(3):
        kept.keeper.hear({"n2": [kept.first.kid, "theirs"]}, {"theirs"})
    assert kept.keeper.state() == "another node signs with theirs"
    assert [(each.message, getattr(each, "bothy.key.ids")) for each in caplog.records] == [
        ("signing key missing", ["theirs"])
    ]
    kept.keeper.hear({"n2": [kept.first.kid]}, {kept.first.kid})
    assert kept.keeper.state() == "ok"


async def test_a_change_under_way_is_no_fault(kept, caplog):
    made = kept.rotate()
    await kept.event("keys.changed")
    await holds(kept, made)
    kept.keeper.hear({"n2": [kept.first.kid]}, {kept.first.kid})
    kept.keeper.hear({"n2": [kept.first.kid, made.kid]}, {kept.first.kid})
    assert caplog.messages == []
    for _ in range(2):
        kept.keeper.hear({"n2": [kept.first.kid]}, {kept.first.kid})
    assert caplog.messages == ["signing key missing elsewhere"]


async def test_every_fault_of_the_keys_is_a_record_of_its_own(kept, caplog):
    made = kept.rotate()
    await kept.event("keys.changed")
    await holds(kept, made)
    (kept.folder / f"{made.kid}.json").unlink()
    await kept.event("keys.changed")
    await eventually(lambda: "gone" in kept.keeper.state())
    kept.clock.advance(LEAD.total_seconds())
    for _ in range(2):
        kept.keeper.hear({"n2": [kept.first.kid]}, {kept.first.kid})
    assert caplog.messages == ["signing key file gone", "signing key missing elsewhere", "signing key waits"]
    assert len(load_keys(kept.folder)) == 1
