"""How durations, sizes, rates and addresses are written in the settings.

Every ``parse_`` function takes text from the environment, a number from a TOML file or a value that is parsed already,
and raises ``ValueError`` with a message that shows how to write it. ``format_`` writes what ``parse_`` reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bothy_server.kernel.rates import Rate

_SECOND = 1_000_000
_MICROSECONDS = {"d": 86_400 * _SECOND, "h": 3600 * _SECOND, "min": 60 * _SECOND, "s": _SECOND, "ms": 1000}
_BYTES = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_PERIODS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)
_RATE = re.compile(r"(\d+)\s*(?:per|/)\s*([a-z]+)", re.ASCII)
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]\s]+)):(\d{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a listener is bound. Port 0 means a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_duration(value: Any) -> Any:
    """Seconds from ``"20s"``, ``"10 min"``, ``"250ms"``, ``"7 d"``, ``"12 h"`` or a plain number of seconds."""
    how = 'a duration is written like "20 s", "250 ms", "10 min", "12 h", "7 d"'
    return _amount(value, _MICROSECONDS | {"": _SECOND}, how) / _SECOND if isinstance(value, str) else value


def parse_size(value: Any) -> Any:
    """Bytes from ``"64 KiB"``, ``"8 MiB"``, ``"1 GiB"``, ``"512 B"`` or a plain number of bytes."""
    how = 'a size is written like "64 KiB", "8 MiB" or as a number of bytes'
    return _amount(value, _BYTES | {"": 1}, how) if isinstance(value, str) else value


def parse_rate(value: Any) -> Any:
    """A :class:`Rate` from ``"30 per minute"`` or ``"5/second"``."""
    if not isinstance(value, str):
        return value
    match = _RATE.fullmatch(value.strip())
    if match is None or match[2] not in _PERIODS or int(match[1]) == 0:
        raise ValueError('a rate is written like "30 per minute", "5 per second" or "100 per hour"')
    return Rate(int(match[1]), _PERIODS[match[2]])


def parse_address(value: Any) -> Any:
    """An :class:`Address` from ``"127.0.0.1:8080"`` or ``"[::1]:8080"``."""
    if not isinstance(value, str):
        return value
    match = _ADDRESS.fullmatch(value.strip())
    if match is None or int(match[3]) > 65535:
        raise ValueError('an address is written like "127.0.0.1:8080" or "[::1]:8080"')
    return Address(match[1] or match[2], int(match[3]))


def parse_list(value: Any) -> Any:
    """The items of a comma-separated text; a list from a file stays what it is."""
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


def parse_networks(value: Any) -> Any:
    """Networks from ``"10.0.0.0/24, ::1"`` or a list of such; an address alone is a network of one."""
    return tuple(_network(item) for item in parse_list(value))


def _network(item: Any) -> IPv4Network | IPv6Network:
    try:
        return ip_network(item)
    except ValueError:
        raise ValueError('addresses and networks are written like "10.0.0.5, 10.1.0.0/24, ::1"') from None


def check_database_url(url: str) -> None:
    """Raises ``ValueError`` for what is no address of PostgreSQL; the message never holds the address, which has a password."""
    scheme, separator, _ = url.partition("://")
    how = "an address like postgresql://USER@HOST/NAME is needed"
    if not separator:
        raise ValueError(how)
    if scheme not in {"postgresql", "postgres"}:
        raise ValueError(f"{scheme} is not PostgreSQL: {how}")
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise ValueError("this is no address that PostgreSQL's client understands") from None


def names_password(url: str) -> bool:
    """Whether an address that :func:`check_database_url` passed holds a password."""
    return bool(conninfo_to_dict(url).get("password"))


def with_password(url: str, password: str) -> str:
    """What PostgreSQL's client takes for the address with the password."""
    return make_conninfo(url, password=password)


def read_password(file: Path) -> str:
    """The one line of a file. Raises ``ValueError``; the message never holds what was read."""
    try:
        lines = file.read_text().splitlines()
    except OSError as error:
        raise ValueError(f"password_file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"password_file {file} is no text") from None
    if len(lines) != 1 or not lines[0]:
        raise ValueError(f"password_file {file} must hold one line, the password")
    return lines[0]


def format_duration(seconds: float) -> str:
    """In the largest unit that needs no fraction: ``43200.0`` is ``12 h``."""
    return _in_largest_unit(round(seconds * _SECOND), _MICROSECONDS)


def format_size(size: int) -> str:
    """In the largest unit that needs no fraction: ``65536`` is ``64 KiB``."""
    return _in_largest_unit(size, _BYTES)


def format_rate(rate: Rate) -> str:
    """``30 per minute``."""
    return f"{rate.count} per {next(name for name, period in _PERIODS.items() if period == rate.period_s)}"


def _amount(text: str, units: Mapping[str, int], how: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] not in units:
        raise ValueError(how)
    return float(match[1]) * units[match[2]]


def _in_largest_unit(amount: int, units: Mapping[str, int]) -> str:
    if amount == 0:
        return "0"
    for unit, worth in units.items():
        if amount % worth == 0:
            return f"{amount // worth} {unit}"
    smallest, worth = list(units.items())[-1]
    return f"{amount / worth:g} {smallest}"
