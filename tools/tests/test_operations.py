"""What the pages for operators tell people to type is there: commands, their options, and keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bothy_device.cli import cli as bothy
from bothy_host.cli import _commands as bothy_host
from bothy_server.commands import bothy_server

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
PAGES = [
    *sorted(OPERATIONS.glob("*.md")),
    ROOT / "infra/compose/README.md",
    ROOT / "README.md",
    ROOT / "docs/spec/edge.md",
]
PROGRAMS: dict[str, click.Command] = {"bothy": bothy, "bothy-host": bothy_host, "bothy-server": bothy_server}
_CODE = re.compile(r"^```.*?^```|^    .+$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?:^ *`?|\$ |\| |-u bothy |\bapi )(bothy(?:-server|-host)?) ((?:[\w.:/=@-]+ ?)+)", re.MULTILINE)
"""At the beginning of a line or of inline code, or behind a prompt, a pipe, sudo or the name of a service."""


def calls(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Program and words of every call on the page."""
    for code in _CODE.findall(page.read_text()):
        for program, words in _CALL.findall(code.replace("\\\n", " ")):
            yield program, words.split()


def fault(program: str, words: list[str]) -> str | None:
    """What click would say about the commands and options of a call."""
    command = PROGRAMS[program]
    context = click.Context(command, info_name=program)
    try:
        _, rest, _ = command.make_parser(context).parse_args(words)
        while isinstance(command, click.Group) and rest:
            name, found, rest = command.resolve_command(context, rest)
            assert found is not None
            command, context = found, click.Context(found, info_name=name, parent=context)
            _, rest, _ = command.make_parser(context).parse_args(rest)
    except click.UsageError as error:
        return f"{program} {' '.join(words)}: {error.format_message()}"
    return None


def test_the_settings_of_the_install_page_are_settings(tmp_path: Path) -> None:
    block = re.search(r"^```toml\n(.*?)^```", (OPERATIONS / "install.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    (tmp_path / "server.toml").write_text(block[1])
    shown = CliRunner(env={"BOTHY_CONFIG": str(tmp_path / "server.toml")}).invoke(bothy_server, ["settings"])
    assert shown.exit_code == 0, shown.output
    assert "relay.example.com" in shown.output
    assert "PASSWORD" not in shown.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_pages_exist(page: Path) -> None:
    assert [wrong for program, words in calls(page) if (wrong := fault(program, words))] == []
