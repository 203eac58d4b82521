"""``bothy-server``: runs a node or a worker, and the few acts that need no node."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point; says what to install when the ``server`` extra is missing."""
    try:
        from bothy_server.commands import bothy_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in {"bothy_server", "bothy_wire"}:
            raise
        sys.exit(
            f"bothy-server: {error.name} is not installed; install the server with: pip install 'bothy-relay[server]'"
        )
    bothy_server()
