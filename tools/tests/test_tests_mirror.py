from __future__ import annotations

from pathlib import Path

import tests_mirror

RULE = "def step(state):\n    return state\n"


def write(root: Path, name: str, text: str = RULE) -> None:
    path = root / "services" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_mirror_wants_a_test_for_a_rule(tmp_path: Path) -> None:
    write(tmp_path, "server/bothy_server/hosts/domain/presence.py")
    assert tests_mirror.untested(tmp_path) == ["services/server/bothy_server/hosts/domain/presence.py"]
    write(tmp_path, "server/tests/hosts/test_presence.py")
    assert tests_mirror.untested(tmp_path) == []


def test_mirror_wants_one_test_for_each_of_two_namesakes(tmp_path: Path) -> None:
    write(tmp_path, "server/bothy_server/hosts/domain/signals.py")
    write(tmp_path, "server/bothy_server/terminal/domain/signals.py")
    write(tmp_path, "server/tests/hosts/test_signals.py")
    assert tests_mirror.untested(tmp_path) == ["services/server/bothy_server/terminal/domain/signals.py"]


def test_mirror_takes_the_test_of_a_package(tmp_path: Path) -> None:
    write(tmp_path, "server/bothy_server/terminal/domain/rendezvous/timers.py")
    write(tmp_path, "server/tests/test_rendezvous.py")
    assert tests_mirror.untested(tmp_path) == []


def test_mirror_wants_no_test_for_declarations(tmp_path: Path) -> None:
    write(tmp_path, "wire/bothy_wire/names.py", "LIMIT = 1\n\n\nclass Fault(Exception):\n    pass\n")
    write(
        tmp_path,
        "server/bothy_server/hosts/app/ports.py",
        "from typing import Protocol\n\n\nclass Store(Protocol):\n    def get(self):\n        return self\n",
    )
    write(tmp_path, "server/bothy_server/hosts/adapters/postgres.py")
    write(tmp_path, "server/bothy_server/hosts/domain/__init__.py")
    assert tests_mirror.untested(tmp_path) == []
