"""What an engine leaves in this machine's network when it ends, and taking it out again.

dockerd never removes its chains, its bridge, the policy of FORWARD and forwarding. Whatever was there before stays,
also what another engine made; a machine that restarts forgets all of it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TOOLS = ("iptables", "ip6tables")
_BRIDGE = "docker0"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_OF_AN_ENGINE = re.compile(r"\bDOCKER(-[A-Z0-9-]+)?\b|\bdocker0\b")


@contextmanager
def network_as_before() -> Iterator[None]:
    """Take out at the end what an engine of the block left. Needs root."""
    tools = [each for each in _TOOLS if shutil.which(f"{each}-save") and shutil.which(f"{each}-restore")]
    before = {each: _saved(each) for each in tools}
    had_bridge, forwarded = _has_bridge(), _FORWARDING.read_text()
    try:
        yield
    finally:
        for each in tools:
            if undo := undone(before[each], _saved(each)):
                subprocess.run([f"{each}-restore", "--noflush"], input=undo, text=True, check=True)
        if _has_bridge() and not had_bridge:
            subprocess.run(["ip", "link", "delete", _BRIDGE], check=True)
        if _FORWARDING.read_text() != forwarded:
            _FORWARDING.write_text(forwarded)


def undone(before: str, after: str) -> str:
    """From two answers of ``iptables-save`` what ``iptables-restore --noflush`` takes to undo an engine's part of the change.

    Rules and chains of others that came meanwhile stay.
    """
    old, lines = _tables(before), []
    for table, entries in _tables(after).items():
        new = [each for each in entries if each not in old.get(table, ())]
        rules = [each for each in new if each.startswith("-A ") and _OF_AN_ENGINE.search(each)]
        chains = [each[1:].split()[0] for each in new if each.startswith(":") and _OF_AN_ENGINE.search(each)]
        policies = [each for each in old.get(table, ()) if each.startswith(":FORWARD ") and each not in entries]
        undo = [
            *(f"-D{each[2:]}" for each in rules),
            *(f"-X {each}" for each in chains),
            *(f"-P {each[1:]}" for each in policies),
        ]
        if undo:
            lines += [f"*{table}", *undo, "COMMIT"]
    return "".join(f"{each}\n" for each in lines)


def _tables(saved: str) -> dict[str, list[str]]:
    """Rules, and chains with their policies, by table; counters are left out."""
    found: dict[str, list[str]] = {}
    table = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith((":", "-A ")):
            found.setdefault(table, []).append(re.sub(r" \[\d+:\d+\]$", "", line))
    return found


def _saved(tool: str) -> str:
    return subprocess.run([f"{tool}-save"], capture_output=True, text=True, check=True).stdout


def _has_bridge() -> bool:
    return Path("/sys/class/net", _BRIDGE).exists()
