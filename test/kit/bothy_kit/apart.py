"""A cluster that runs in a thread with a loop of its own, for tests that block: they call its nodes over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from bothy_kit.cluster import Cluster, cluster

T = TypeVar("T")

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Apart:
    """The cluster, and what reaches into its loop."""

    cluster: Cluster
    loop: asyncio.AbstractEventLoop

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        """Do it there; its outcome."""
        return asyncio.run_coroutine_threadsafe(act, self.loop).result(_PATIENCE_S)


@contextmanager
def cluster_apart(database_url: str, folder: Path, **options: Any) -> Iterator[Apart]:
    """A cluster for the block; ``options`` are those of :func:`~bothy_kit.cluster.cluster`."""
    started: Future[Apart] = Future()
    stopped = asyncio.Event()

    async def run() -> None:
        try:
            async with cluster(database_url, folder, **options) as running:
                started.set_result(Apart(running, asyncio.get_running_loop()))
                await stopped.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = Thread(target=lambda: asyncio.run(run()), name="cluster")
    thread.start()
    try:
        apart = started.result(_PATIENCE_S)
        try:
            yield apart
        finally:
            apart.loop.call_soon_threadsafe(stopped.set)
    finally:
        thread.join()
