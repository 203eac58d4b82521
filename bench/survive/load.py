"""The load: one host and its sessions, with both ends of each in this process. Started by ``bench/survive``.

Reads one JSON line (address, codes, number of sessions), prints an empty object when every channel is open, goes on until a line
comes, and prints the figures as one more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

from light_device import LightDevice
from light_host import LightHost

from bothy_kit.fake_device import FakeDevice
from bothy_kit.fake_host import FakeHost

_AT_ONCE = 8
"""Sessions that are opened at the same time."""
_SETTLE_S = 60.0
"""For what is still under way when the load ends."""


async def main() -> None:
    """Until it is told to end."""
    order = json.loads(await asyncio.to_thread(sys.stdin.readline))
    url, count = order["url"], order["sessions"]
    async with FakeDevice(url, url) as device, asyncio.TaskGroup() as group:
        await device.redeem(order["invite"])
        await device.login()
        fake_host = FakeHost(url, url)
        await fake_host.pair(order["code"])
        host = LightHost(fake_host)
        tasks = [group.create_task(host.run())]
        await host.connected.wait()
        await asyncio.sleep(order["probation_s"])
        sessions = [LightDevice(device, fake_host.host_id) for _ in range(count)]
        for first in range(0, count, _AT_ONCE):
            few = sessions[first : first + _AT_ONCE]
            tasks += [group.create_task(each.run()) for each in few]
            for each in few:
                await each.open.wait()
        keyboards = [group.create_task(each.type()) for each in sessions]
        print("{}", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for keyboard in keyboards:
            keyboard.cancel()
        await _settled(host, sessions)
        print(json.dumps(_figures(host, sessions)), flush=True)
        for task in tasks:
            task.cancel()


async def _settled(host: LightHost, sessions: list[LightDevice]) -> None:
    """Until everything typed and printed has arrived, or it takes too long."""
    host.quiet()
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        figures = [each.figures for each in sessions]
        if all(each.typed == each.acknowledged for each in figures) and sum(each.received for each in figures) == sum(
            each.printed for each in host.sessions.values()
        ):
            return
        await asyncio.sleep(0.1)


def _figures(host: LightHost, sessions: list[LightDevice]) -> dict[str, Any]:
    ends = {each.session_id: each.figures for each in sessions}
    output_lost = input_lost = 0
    for session_id, session in host.sessions.items():
        seen = ends[session_id]
        output_lost += abs(session.printed - seen.received) + seen.wrong
        input_lost += abs(seen.typed - session.typed) + session.wrong
    return {
        "sessions": len(sessions),
        "output_bytes": sum(each.printed for each in host.sessions.values()),
        "input_bytes": sum(each.typed for each in ends.values()),
        "output_lost": output_lost,
        "input_lost": input_lost,
        "repaints": sum(each.repaints - 1 for each in ends.values()),
        "ended": sum(each.ended is not None for each in ends.values()),
        "gaps_s": sorted(gap for each in ends.values() for gap in each.gaps_s),
    }


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
