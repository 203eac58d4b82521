"""Nodes that a test can spoil: whatever goes to one, and from one to PostgreSQL, passes a link of its own.

``cluster(..., start=start_behind_links)`` makes them.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from pydantic import SecretStr

from bothy_kit.cluster import Running, Unattended
from bothy_kit.links import Link, database_link, link
from bothy_kit.processes import reserved_port
from bothy_server import wiring
from bothy_server.cluster.adapters.postgres.connection import APPLICATION_NAME as LISTENER
from bothy_server.platform.setting_values import Address
from bothy_server.platform.settings import Settings


@dataclass(slots=True)
class SpoilableNode(Running):
    """A node with its two ways: ``front`` for those that dial it, ``database`` for what it asks and hears."""

    front: Link
    database: Link

    def pause(self) -> None:
        """Freeze all its ways, as a machine that stands still: every connection stays open, and nothing passes."""
        self.front.pause()
        self.database.pause()

    def cut(self) -> None:
        """Reset the connections of its clients; the node lives."""
        self.front.cut()

    def deafen(self) -> None:
        """Freeze its listener alone: the connection stays open, and nothing comes."""
        self.database.pause(LISTENER)

    def drop_signals(self) -> None:
        """Its listener hears nothing that is notified, and gets every answer."""
        self.database.drop_signals(LISTENER)

    async def lose_database(self) -> None:
        """Reset all it has to PostgreSQL, and refuse what it dials."""
        await self.database.refuse()
        self.database.cut()

    async def heal(self) -> None:
        """No fault any more. What was paused flows on; what was cut stays cut."""
        await self.front.heal()
        await self.database.heal()

    async def stop(self) -> None:
        """End it. What stood still flows on first: nobody waits here for the patience of a node with its database."""
        self.front.flow()
        self.database.flow()
        await super(SpoilableNode, self).stop()  # a class with slots is made twice, and super() finds the first one

    async def kill(self) -> None:
        """Gone without a word: nothing of its end reaches a client, another node or the database."""
        await self.lose_database()
        await self.front.refuse()
        self.front.cut()
        await self.stop()


async def start_behind_links(made: Settings) -> SpoilableNode:
    """One node behind links."""
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        front = await stack.enter_async_context(link(("127.0.0.1", port)))
        database, url = await stack.enter_async_context(database_link(made.database.url.get_secret_value()))
        behind = made.model_copy(
            update={
                "server": made.server.model_copy(update={"listen": Address("127.0.0.1", port)}),
                "database": made.database.model_copy(update={"url": SecretStr(url)}),
            }
        )
        parts = await stack.enter_async_context(Unattended())
        node = await wiring.start_node(behind, parts)
        return SpoilableNode(node, f"http://127.0.0.1:{front.port}", stack.pop_all(), front, database)
