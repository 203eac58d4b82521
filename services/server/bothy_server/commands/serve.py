"""``bothy-server serve``."""

from __future__ import annotations

import asyncio
import logging
import signal

import click
import uvloop

from bothy_server import wiring
from bothy_server.commands.calls import fail, guarded, settings_in_force
from bothy_server.platform.lifecycle import Lifecycle
from bothy_server.platform.logs import configure_logging
from bothy_server.platform.settings import Settings

_log = logging.getLogger(__name__)


@click.command()
@click.option("--role", type=click.Choice(["api", "worker", "all"]), help="Instead of the key server.role.")
def serve(role: str | None) -> None:
    """Run a node (role api), a worker, or both in one process (role all)."""
    settings = settings_in_force()
    if role is not None:
        settings = settings.model_copy(update={"server": settings.server.model_copy(update={"role": role})})
    configure_logging(settings.log)
    if settings.server.role != "worker" and not settings.server.public_origins:
        fail(
            "server.public_origins is empty: set it to the address that clients dial, such as https://relay.example.com"
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        guarded(lambda: runner.run(_serve(settings)))


async def _serve(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    async with Lifecycle() as parts:
        on_signal = parts.stop

        def leave() -> None:
            """The first signal lets a node drain, the second one ends it."""
            nonlocal on_signal
            _log.info("leaving")
            act, on_signal = on_signal, parts.stop
            act()

        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, leave)
        role = settings.server.role
        if role == "worker":
            internal = await wiring.start_worker(settings, parts)
            _log.info("ready", extra={"role": role, "internal": str(internal)})
        else:
            node = await wiring.start_node(settings, parts)
            on_signal = node.drain.begin
            addresses = {"public": str(node.public), "internal": str(node.internal)}
            _log.info("ready", extra={"role": role, "node": str(node.id), **addresses})
        await parts.until_stopped()
