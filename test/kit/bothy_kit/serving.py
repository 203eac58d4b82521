"""``bothy-server serve`` in a process of its own, and what it logs."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx

from bothy_kit.sockets import PATIENCE_S
from bothy_server.identity.adapters.keystore.store import add_key

BOTHY_SERVER = [sys.executable, "-c", "from bothy_server.cli import main; main()"]


class Serving:
    """One process while it runs, and after."""

    def __init__(self, process: subprocess.Popen[str], public: int, internal: int, environment: dict[str, str]) -> None:
        self.process, self.public, self.internal, self.environment = process, public, internal, environment
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def url(self) -> str:
        """Of its public listener."""
        return f"http://127.0.0.1:{self.public}"

    def said(self, event: str) -> dict[str, Any]:
        """The line of the log; fails when the process ends or is silent before it comes."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            entry: dict[str, Any] = json.loads(line)
            if entry["event"] == event:
                return entry
        raise AssertionError(f"it ended and never said: {event}")

    def rest(self) -> list[str]:
        """What it says until it ends."""
        rest = []
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            rest.append(line)
        return rest

    def get(self, path: str) -> httpx.Response:
        """Ask its internal listener."""
        return httpx.get(f"http://127.0.0.1:{self.internal}{path}", trust_env=False)

    def takes_clients(self) -> bool:
        """Whether its public listener accepts connections."""
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.public)) == 0

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def serving(url: str, folder: Path, role: str, **more: str) -> Iterator[Serving]:
    """Start one on the database at ``url``; its keys are in ``folder``. ``more`` are settings by their environment names."""
    if not (folder / "keys").exists():
        now = datetime.now(UTC)
        add_key(folder / "keys", now, now)
    public, internal = _free_port(), _free_port()
    settings = {
        "BOTHY_DATABASE__URL": url,
        "BOTHY_DATABASE__LISTEN_RECONNECT_BACKOFF_CAP": "200 ms",
        "BOTHY_SECRETS__SIGNING_KEY_DIR": str(folder / "keys"),
        "BOTHY_SERVER__PUBLIC_ORIGINS": "https://relay.example.com",
        "BOTHY_SERVER__LISTEN": f"127.0.0.1:{public}",
        "BOTHY_SERVER__INTERNAL_LISTEN": f"127.0.0.1:{internal}",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith("BOTHY_")}
    environment = inherited | settings | more
    program = [*BOTHY_SERVER, "serve", "--role", role]
    with subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True) as process:
        running = Serving(process, public, internal, environment)
        try:
            yield running
        finally:
            running.end()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
