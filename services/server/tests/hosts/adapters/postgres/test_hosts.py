"""Rows of hosts. What the use cases show is not shown again."""

import asyncio

import pytest
from sqlalchemy.exc import DBAPIError

from bothy_kit.rows import Keys
from bothy_server.hosts.app.ports import HostStore
from bothy_server.hosts.domain.host import HostState


async def test_a_new_host_is_nobodys_yet(rows):
    host_id = await rows.unpaired_host()
    async with rows.uow() as unit:
        host = await unit.of(HostStore).get(host_id)
        assert host == await unit.of(HostStore).lock(host_id) == await unit.of(HostStore).find(host.name)
    assert (host.state, host.pairing_seq, host.paired, dict(host.profiles)) == (HostState.PENDING, 1, False, {})
    assert (host.boot_id, host.last_conn_id, host.last_seen_at, host.join_confirmed, host.join_offered) == (
        None,
        None,
        None,
        0,
        0,
    )


async def test_a_lock_is_held_until_the_unit_ends(rows):
    host_id = await rows.unpaired_host()
    async with rows.uow() as unit:
        await unit.of(HostStore).lock(host_id)
        other = asyncio.create_task(lock(rows, host_id))
        await rows.blocked()
        assert not other.done()
    await other


async def lock(rows, host_id):
    async with rows.uow() as unit:
        await unit.of(HostStore).lock(host_id)


async def test_hosts_come_by_name(rows):
    made = {await rows.unpaired_host() for _ in range(3)}
    async with rows.uow() as unit:
        many, everyone = await unit.of(HostStore).many(made), await unit.of(HostStore).all()
    assert {host.id for host in many} == made
    for hosts in (many, everyone):
        assert [host.name for host in hosts] == sorted(host.name for host in hosts)
    assert made <= {host.id for host in everyone}


async def test_a_state_is_written_with_its_reason(rows):
    host = await rows.host()
    async with rows.uow() as unit:
        store = unit.of(HostStore)
        await store.set_state(host.id, HostState.DISABLED, "duplicate_connection")
        disabled = await store.get(host.id)
        await store.set_state(host.id, HostState.ACTIVE)
        active = await store.get(host.id)
    assert (disabled.state, disabled.disabled_reason) == (HostState.DISABLED, "duplicate_connection")
    assert (active.state, active.disabled_reason) == (HostState.ACTIVE, None)


async def test_a_key_that_is_none_is_our_fault_and_no_refusal(rows):
    """Only a key that another host has is answered; the border checks lengths."""
    host_id = await rows.unpaired_host()
    with pytest.raises(DBAPIError, match="check constraint"):
        await store_keys(rows, host_id, b"short")


async def store_keys(rows, host_id, signing_key):
    async with rows.uow() as unit:
        await unit.of(HostStore).store_keys(host_id, signing_key, Keys().public[1], HostState.ACTIVE, 1)


async def test_several_hosts_are_noted_as_seen(rows):
    hosts = [await rows.unpaired_host() for _ in range(2)]
    async with rows.uow() as unit:
        await unit.of(HostStore).touch(hosts)
        assert all(host.last_seen_at is not None for host in await unit.of(HostStore).many(hosts))


async def test_expired_codes_are_forgotten_and_no_others(rows):
    hosts = [await rows.unpaired_host() for _ in range(2)]
    async with rows.uow() as unit:
        store = unit.of(HostStore)
        for host_id, ttl_s in zip(hosts, (-1, 60), strict=True):
            await store.add_code(rows.new_id(), host_id, host_id.bytes * 2, ttl_s)
        assert await store.prune_codes() == 1
        assert await store.prune_codes() == 0
        assert await store.use_code(hosts[0].bytes * 2) is None
        assert await store.use_code(hosts[1].bytes * 2) == hosts[1]
