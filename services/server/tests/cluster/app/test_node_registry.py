"""A process enters its row, keeps it fresh and leaves it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bothy_kit.manual_clock import ManualClock
from bothy_server.cluster.app.node_registry import NodeDirectory, NodeRegistry, RegistryLimits
from bothy_server.cluster.domain.node import Figures, HeldKeys, Node, NodeState
from bothy_server.kernel.caller import Caller
from bothy_server.kernel.problems import Problem
from bothy_server.kernel.unit import StorageUnavailable
from bothy_wire.ids import NodeId, StepUpId

LIMITS = RegistryLimits(interval=10, forget_after=3600)
FIGURES = Figures(
    sides=3,
    pairs=1,
    pending=1,
    unpaired_client=4,
    unpaired_host=5,
    echo_age_s=0.5,
    tail_lag_s=1.5,
    forwarded_bytes=2**40,
    key_ids=("a", "b"),
    signs_with="a",
)


@pytest.fixture
def clock():
    return ManualClock(datetime.now(UTC))


class Process:
    """One process of the table."""

    def __init__(self, rows, figures=FIGURES):
        self.node = Node(NodeId(rows.new_id()), "api", "http://127.0.0.1:8080", "1.0")
        self.figures = figures
        self.synchronized = 0
        self.heard = []
        self.registry = NodeRegistry(
            rows.uow, rows.clock, self.node, lambda: self.figures, self.synchronize, self.hear, LIMITS
        )

    async def synchronize(self):
        self.synchronized += 1

    def hear(self, others):
        self.heard = others


@pytest.fixture
def new_process(rows):
    return lambda **options: Process(rows, **options)


class Permission:
    """Keeps what was spent; ``confirmed`` is the one confirmation that counts, and the command line needs none."""

    def __init__(self, confirmed=None):
        self.confirmed, self.spent = confirmed, []

    async def check(self, unit, caller: Caller | None):
        if caller is not None and not caller.is_operator:
            raise Problem(403, "operator_required", "No.")

    async def spend(self, unit, caller, step_up_id):
        if caller is not None:
            if step_up_id != self.confirmed:
                raise Problem(401, "step_up_required", "Confirm again.")
            self.spent.append((caller, step_up_id))


async def listed(rows, process):
    found = [each for each in await NodeDirectory(rows.uow, Permission(), LIMITS).list() if each.node == process.node]
    return found[0] if found else None


async def test_a_process_enters_with_its_figures_and_is_told_of(rows, new_process):
    process = new_process()
    await process.registry.enter()
    found = await listed(rows, process)
    assert (found.state, found.figures) == (NodeState.ACTIVE, FIGURES)
    assert found.silent_s < 5
    assert await rows.events(node_id=process.node.id) == ["node.changed"]


async def test_every_interval_it_writes_and_reads_the_clock(rows, new_process):
    process = new_process()
    await process.registry.enter()
    running = asyncio.create_task(process.registry.run())
    await rows.clock.wait_for_timer()
    process.figures = replace(FIGURES, sides=7, signs_with="b")
    rows.clock.advance(LIMITS.interval)
    await rows.clock.wait_for_timer()
    running.cancel()
    found = await listed(rows, process)
    assert (found.figures, process.synchronized) == (process.figures, 1)
    assert await rows.events(node_id=process.node.id) == ["node.changed"]


async def test_it_goes_on_after_the_database_was_away(rows, new_process):
    process = new_process()
    await process.registry.enter()
    running = asyncio.create_task(process.registry.run())
    await rows.clock.wait_for_timer()
    rows.away = True
    rows.clock.advance(LIMITS.interval)
    await rows.clock.wait_for_timer()
    assert process.synchronized == 0
    rows.away = False
    rows.clock.advance(LIMITS.interval)
    await rows.clock.wait_for_timer()
    running.cancel()
    assert process.synchronized == 1


async def test_leaving_is_told_and_needs_no_database(rows, new_process, caplog):
    process, silent = new_process(), new_process()
    await process.registry.enter()
    await process.registry.leave()
    assert (await listed(rows, process)).state is NodeState.LEAVING
    assert await rows.events(node_id=process.node.id) == ["node.changed"] * 2
    await silent.registry.enter()
    rows.away = True
    await silent.registry.leave()
    assert caplog.messages == ["node left without a word: the database does not answer"]


async def test_a_silent_process_is_forgotten_and_enters_again(rows, new_process):
    process, other = new_process(), new_process()
    for each in (process, other):
        await each.registry.enter()
    await rows.run(
        "UPDATE cluster_nodes SET heartbeat_at = now() - interval '3601 s' WHERE node_id = :id", id=process.node.id
    )
    assert await NodeDirectory(rows.uow, Permission(), LIMITS).prune() == 1
    assert await listed(rows, process) is None
    assert await listed(rows, other) is not None
    await process.registry.write()
    assert (await listed(rows, process)).figures == FIGURES


async def test_the_keys_of_the_others_are_heard_with_each_write(rows, new_process):
    process, other, worker, left = (new_process() for _ in range(4))
    worker.figures = Figures()
    for each in (other, worker, left):
        await each.registry.enter()
    await left.registry.leave()
    await process.registry.enter()
    held = HeldKeys(other.node.id, ("a", "b"), "a")
    ours = {each.node.id for each in (process, other, worker, left)}
    assert [each for each in process.heard if each.node_id in ours] == [held], "who is new knows before it serves"
    other.figures = replace(FIGURES, key_ids=("a", "b", "c"), signs_with="c")
    await other.registry.write()
    await process.registry.write()
    assert HeldKeys(other.node.id, ("a", "b", "c"), "c") in process.heard

    await rows.run("UPDATE node_status SET written_at = now() - interval '31 s' WHERE node_id = :id", id=other.node.id)
    await process.registry.write()
    assert not [each for each in process.heard if each.node_id in ours], "a node that is gone signs nothing"


async def test_a_failed_write_is_told_to_the_caller(rows, new_process):
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await new_process().registry.enter()


# ---- drain ----------------------------------------------------------------------------------------------------------


async def test_a_drain_is_told_at_once(rows, new_process):
    process = new_process()
    await process.registry.enter()
    running = asyncio.create_task(process.registry.run())
    await rows.clock.wait_for_timer()
    process.figures = replace(FIGURES, sides=2, controls=1)
    process.registry.drain()
    async with asyncio.timeout(10):
        while process.synchronized == 0:  # noqa: ASYNC110 - written behind our back, at no instant of the clock
            await asyncio.sleep(0.001)
    running.cancel()
    found = await listed(rows, process)
    assert (found.state, found.figures) == (NodeState.DRAINING, process.figures)
    await process.registry.write()
    assert await rows.events(node_id=process.node.id) == ["node.changed"] * 2, "once when it entered, once now"


async def test_a_drain_begun_without_the_database_is_told_later(rows, new_process):
    process = new_process()
    await process.registry.enter()
    process.registry.drain()
    rows.away = True
    with pytest.raises(StorageUnavailable):
        await process.registry.write()
    rows.away = False
    await process.registry.write()
    assert (await listed(rows, process)).state is NodeState.DRAINING
    assert await rows.events(node_id=process.node.id) == ["node.changed"] * 2


async def test_an_order_in_the_row_stays_when_the_node_writes(rows, new_process):
    process = new_process()
    await process.registry.enter()
    directory = NodeDirectory(rows.uow, Permission(), LIMITS)
    for _ in range(2):
        assert (await directory.drain(process.node.id)).node == process.node
    assert await rows.events(node_id=process.node.id) == ["node.changed"] * 2, "the second order changed nothing"
    await process.registry.write()
    assert (await listed(rows, process)).state is NodeState.DRAINING


async def test_who_cannot_drain_is_told(rows, new_process):
    process, worker = new_process(), new_process()
    worker.registry = NodeRegistry(
        rows.uow, rows.clock, replace(worker.node, role="worker"), Figures, worker.synchronize, worker.hear, LIMITS
    )
    await worker.registry.enter()
    await process.registry.enter()
    await process.registry.leave()
    directory = NodeDirectory(rows.uow, Permission(), LIMITS)
    for node_id, code, why in (
        (worker.node.id, "node_cannot_drain", "A worker holds no connection"),
        (process.node.id, "node_cannot_drain", "The node has left"),
        (NodeId(rows.new_id()), "node_unknown", "No node has this id"),
    ):
        with pytest.raises(Problem, match=code) as raised:
            await directory.drain(node_id)
        assert why in raised.value.detail


async def test_an_operator_asks_a_node_to_leave_with_a_confirmation(rows, new_process):
    process = new_process()
    await process.registry.enter()
    device, confirmed = await rows.device(operator=True), StepUpId(rows.new_id())
    permission = Permission(confirmed)
    directory = NodeDirectory(rows.uow, permission, LIMITS)
    with pytest.raises(Problem, match="step_up_required"):
        await directory.drain(process.node.id, device.caller, StepUpId(rows.new_id()))
    assert (await listed(rows, process)).state is NodeState.ACTIVE
    for _ in range(2):
        assert (await directory.drain(process.node.id, device.caller, confirmed)).state is NodeState.DRAINING
    assert permission.spent == [(device.caller, confirmed)], "the second order changed nothing, so it cost nothing"
    assert await rows.audit(person_id=device.person_id, device_id=device.id) == [("node.drain", "asked")]
    assert await rows.events(node_id=process.node.id) == ["node.changed"] * 2


async def test_who_is_no_operator_sees_no_node_and_asks_none(rows, new_process):
    process, caller = new_process(), (await rows.device()).caller
    await process.registry.enter()
    before, directory = await rows.content(), NodeDirectory(rows.uow, Permission(), LIMITS)
    for attempt in (directory.list(caller), directory.drain(process.node.id, caller, StepUpId(rows.new_id()))):
        with pytest.raises(Problem, match="operator_required"):
            await attempt
    assert await rows.content() == before


async def test_a_node_that_was_killed_is_heard_no_more(rows, new_process):
    process = new_process()
    await process.registry.enter()
    directory = NodeDirectory(rows.uow, Permission(), LIMITS)
    assert directory.heard(await listed(rows, process))
    silence = "UPDATE cluster_nodes SET heartbeat_at = now() - interval '31 s' WHERE node_id = :id"
    await rows.run(silence, id=process.node.id)
    assert not directory.heard(await listed(rows, process))
    await process.registry.leave()
    assert not directory.heard(await listed(rows, process)), "it has just said that it goes"
