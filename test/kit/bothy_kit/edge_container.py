"""The edge in its container: nginx reads the files that we ship there, and holds no more rights than they need."""

from __future__ import annotations

import re
from pathlib import Path

from bothy_kit.container_world import Overlay
from bothy_kit.demo_check import CheckError
from bothy_kit.engine import DockerError
from bothy_kit.nginx import SHIPPED, dumped

_NGINX = ("nginx", "-e", "stderr", "-p", "/tmp/edge/", "-c", "/etc/bothy/edge/nginx.conf")
_HARDENED = {"Uid": r"[1-9]\d*", "CapEff": "0+", "CapBnd": "0+", "NoNewPrivs": "1"}
"""Lines of ``/proc/PID/status``: an ordinary account, and nothing to gain."""


def check_edge(overlay: Overlay) -> None:
    """Raises :class:`CheckError`, or :class:`DockerError` when nginx refuses its files or cannot be told to read them again."""
    _inside(overlay, *_NGINX, "-t")
    _inside(overlay, *_NGINX, "-s", "reload")
    read = {Path(name).name: text for name, text in dumped(_inside(overlay, *_NGINX, "-T")).items()}
    if read != (shipped := {path.name: path.read_text() for path in SHIPPED.glob("*.conf")}):
        raise CheckError(f"the edge reads {sorted(read)}, which are not {sorted(shipped)} as shipped")
    status = dict(re.findall(r"^(\w+):\s+(\S+)", _inside(overlay, "cat", "/proc/1/status"), re.MULTILINE))
    for name, expected in _HARDENED.items():
        if not re.fullmatch(expected, status[name]):
            raise CheckError(f"nginx runs with {name} {status[name]}")
    for folder in ("/etc/bothy/edge", "/etc", "/var", "/usr"):
        try:
            _inside(overlay, "touch", f"{folder}/written")
        except DockerError:
            continue
        raise CheckError(f"the edge may write into {folder}")


def _inside(overlay: Overlay, *words: str) -> str:
    return overlay.compose("exec", "-T", "edge", *words)
