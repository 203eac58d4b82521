import asyncio

from bothy_kit.eventually import eventually, footprint


async def test_eventually_returns_when_it_holds():
    found = []
    asyncio.get_running_loop().call_later(0.02, found.append, "it")
    await eventually(lambda: bool(found))

    async def holds():
        return bool(found)

    await eventually(holds)


async def test_a_footprint_shows_a_task_and_an_open_file(tmp_path):
    before = footprint()
    task = asyncio.create_task(asyncio.sleep(60))
    with (tmp_path / "file").open("w"):
        assert footprint() == (before[0] + 1, before[1] + 1)
    task.cancel()
    await asyncio.wait([task])
    assert footprint() == before
