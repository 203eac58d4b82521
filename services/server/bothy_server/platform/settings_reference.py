"""Prints ``docs/operations/configuration.md`` from the settings; a test keeps the page fresh.

python -m bothy_server.platform.settings_reference > docs/operations/configuration.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from bothy_server.platform.load_settings import environment_name
from bothy_server.platform.setting_values import (
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)
from bothy_server.platform.settings import Settings

_HEAD = """\
# Configuration of the server

This page is made from the settings of the program: `python -m bothy_server.platform.settings_reference`.

A key is set by an environment variable or in a TOML file that `BOTHY_CONFIG` names; the environment wins. In the file the
group is a table: `[terminal]`, then `open_timeout = "20 s"`. An unknown name, a bad value or values that do not fit
together fail the start with one line for each.

Durations are written like `250 ms`, `20 s`, `10 min`, `12 h`, `7 d` or as a number of seconds; sizes like `64 KiB`,
`8 MiB` or as a number of bytes; rates like `30 per minute`. Lists in the environment are separated by commas.
"""

_TAIL = """\
## Compose

The Compose files read variables of their own; `infra/compose/.env.example` lists them all. The version of the edge's nginx is
`BOTHY_NGINX_VERSION`, default 1.31.3.
"""

_FORMATS: dict[object, Callable[[Any], str]] = {
    parse_duration: format_duration,
    parse_size: format_size,
    parse_rate: format_rate,
}


def reference() -> str:
    """The whole page."""
    groups = (line for name, field in Settings.model_fields.items() for line in _group(name, field))
    return "\n".join((_HEAD, *groups, _TAIL))


def _group(name: str, field: FieldInfo) -> Iterator[str]:
    assert isinstance(field.annotation, type)
    assert issubclass(field.annotation, BaseModel)
    yield f"## {name}\n\n{inspect.getdoc(field.annotation)}\n"
    yield "| key | default | meaning |"
    yield "| --- | --- | --- |"
    for key, inner in field.annotation.model_fields.items():
        dotted = f"{name}.{key}"
        yield f"| `{dotted}`<br>`{environment_name(dotted)}` | {_default(inner)} | {inner.description} |"
    yield ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or field.default == ():
        return "none"
    for mark in field.metadata:
        if isinstance(mark, BeforeValidator) and (write := _FORMATS.get(mark.func)):
            return write(field.default)
    return str(field.default)


if __name__ == "__main__":
    sys.stdout.write(reference())
