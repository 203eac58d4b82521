"""What becomes of pairing codes."""

from bothy_server.hosts.app.ports import HostStore


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
