"""``docs/operations/bothy.md`` says what the program does."""

import json
import re
from pathlib import Path

import click
import pytest

from bothy_device.cli import cli
from bothy_device.escapes import COMMANDS
from bothy_device.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs/operations/bothy.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def commands(group: click.Group, words: str = "bothy"):
    for name, command in group.commands.items():
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield f"{words} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{words} {name}")


def written(words: str, command: click.Command) -> str:
    arguments = [each.name.upper() for each in command.params if isinstance(each, click.Argument)]
    return " ".join((words, *arguments))


def test_every_command_is_listed_and_no_other():
    assert set(first_cells(section("Commands"))) == {written(*each) for each in commands(cli)}


@pytest.mark.parametrize(("words", "command"), list(commands(cli)))
def test_every_option_is_mentioned(words, command):
    row = next(line for line in section("Commands").splitlines() if line.startswith(f"| `{written(words, command)}` |"))
    shared = section("Commands").split("\n\n")[-1]
    for option in (each for each in command.params if isinstance(each, click.Option)):
        assert option.opts[0] in (shared if option.opts[0] in ("--server", "--json") else row)


def test_every_setting_is_listed_with_its_default():
    rows = re.findall(r"^\| `([a-z_.]+)` \| `([^`]+)` \|", section("Settings"), re.MULTILINE)
    expected = {
        f"{name}.{key}": getattr(part, key)
        for name in Settings.__struct_fields__
        for part in [getattr(Settings(), name)]
        for key in part.__struct_fields__
    }
    assert {key: json.loads(default) for key, default in rows} == expected


def test_every_escape_is_listed():
    shown = {"~" + byte.decode().replace("\x1a", "^Z") for byte in COMMANDS}
    assert set(first_cells(section("Escape keys"))) == shown | {"~~"}
