"""Reading the settings from the environment and the TOML file, and saying clearly what is wrong with them."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from bothy_server.platform.settings import Identity, Secrets, Settings, Terminal, required

S = TypeVar("S", bound=BaseSettings)

PREFIX = "BOTHY_"
FILE = "BOTHY_CONFIG"
_OTHERS = ("BOTHY_TEST_", "BOTHY_DEMO_", "BOTHY_NGINX_", "BOTHY_HTTP_", "BOTHY_HOME")
"""Beginnings of names that belong to tests, the demo, the compose files and the device's program."""


class SettingsError(Exception):
    """What is wrong, one line for each key; never a value."""


def load_settings() -> Settings:
    """The settings of this process. Raises :class:`SettingsError`."""
    return _load(_All)


def load_key_settings() -> KeySettings:
    """What concerns the signing keys, whatever the other groups lack. Raises :class:`SettingsError`."""
    return _load(KeySettings)


def _load(kind: type[S]) -> S:
    unknown = [_unknown(name) for name in os.environ if _is_ours(name) and name not in known_names()]
    if unknown:
        raise SettingsError("\n".join(sorted(unknown)))
    try:
        return kind()
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{os.environ[FILE]}: {error}") from None
    except ValidationError as error:
        raise SettingsError("\n".join(sorted(_lines(error)))) from None


def keys() -> Iterator[tuple[str, FieldInfo]]:
    """Every key in the order of ``settings.py``, as ``group.key``, with its field."""
    for group, field in Settings.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, BaseModel)
        for key, inner in field.annotation.model_fields.items():
            yield f"{group}.{key}", inner


def environment_name(key: str) -> str:
    """``terminal.open_timeout`` is ``BOTHY_TERMINAL__OPEN_TIMEOUT``."""
    return PREFIX + key.replace(".", "__").upper()


def known_names() -> dict[str, str]:
    """Every environment name that is read, with its key."""
    return {environment_name(key): key for key, _ in keys()} | {FILE: "the settings file"}


class _FromOutside:
    """Where groups are filled from: the environment and the file."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first; keyword arguments and other files are no sources."""
        environment = EnvSettingsSource(settings_cls)
        if (file := os.environ.get(FILE)) is None:
            return (environment,)
        if not Path(file).is_file():
            raise SettingsError(f"{FILE}: there is no file {file}")
        return (environment, TomlConfigSettingsSource(settings_cls, toml_file=file))


class _All(_FromOutside, Settings, BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__")


class KeySettings(_FromOutside, BaseSettings):
    """Where the signing keys are, and how long what they sign lives."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="ignore")

    secrets: Secrets = required()
    terminal: Terminal = Terminal()
    identity: Identity = Identity()

    @property
    def longest_life(self) -> float:
        """Seconds after which every token of a key that signs no more has died."""
        return max(self.identity.access_token_ttl, self.terminal.session_token_ttl)


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX) and not name.startswith(_OTHERS)


def _unknown(name: str) -> str:
    return f"{name}: there is no such setting; the nearest is {_nearest(name.upper(), known_names())}"


def _nearest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(name, known, n=1, cutoff=0)[0]


def _lines(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_input=False, include_url=False):
        key = ".".join(str(part) for part in each["loc"])
        match each["type"]:
            case "extra_forbidden":
                yield f"{key}: there is no such setting; the nearest is {_nearest(key, (known for known, _ in keys()))}"
            case "missing":
                yield f"{key}: must be set, for example by {environment_name(key)}"
            case _:
                yield f"{key}: {each['msg'].removeprefix('Value error, ')}"
