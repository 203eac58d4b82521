"""Reads nginx's configuration for what no request can show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from bothy_server.doctor.finding import Finding, failed, ok, unseen
from bothy_wire.limits import data_path, stream_path

_SAMPLE = "0190a0b0-c1d2-7e3f-8a4b-5c6d7e8f9a0b"
_TOKEN = re.compile(r"""\#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]|(?:\$\{\w+\}|[^\s{};])+""")
_DAY = 86400.0
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": _DAY, "w": 7 * _DAY, "M": 30 * _DAY, "y": 365 * _DAY}
_DEFAULT_TIMEOUT = "60s"


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive, with its block where it has one."""

    name: str
    arguments: tuple[str, ...]
    block: tuple[Directive, ...] = ()

    def all(self, name: str) -> Iterator[Directive]:
        """Directives of this name in the block."""
        return (each for each in self.block if each.name == name)


JUDGED = ("conf.zone", "conf.upstreams", "conf.hash", "conf.timeout")


class ConfError(Exception):
    """The file cannot be read as nginx's configuration."""


def read(path: Path) -> Directive:
    """The file with what it includes, as one block. Raises :class:`ConfError`."""
    try:
        return Directive("", (), tuple(_file(path, path.parent)))
    except RecursionError as error:
        raise ConfError(f"{path} includes itself; `nginx -t` says more") from error


def judge(conf: Directive, longest_silence_s: float) -> list[Finding]:
    """``longest_silence_s``: how long a quiet terminal lives."""
    ways = [found for path in (stream_path(_SAMPLE), data_path(_SAMPLE)) if (found := _way(conf, path)) is not None]
    if len(ways) < 2:
        return [unseen(check, "no location with an upstream was found for both stream paths") for check in JUDGED]
    upstreams = {each.arguments[0]: each for _, each in ways}
    return [
        _zone(upstreams.values()),
        ok("conf.upstreams", f"one block, {next(iter(upstreams))}")
        if len(upstreams) == 1
        else failed("conf.upstreams", f"two blocks, {' and '.join(upstreams)}"),
        _hash(upstreams.values()),
        _timeout([way for way, _ in ways], longest_silence_s),
    ]


def _file(path: Path, folder: Path) -> Iterator[Directive]:
    """``folder``: the main file's, from which nginx takes the names of all includes."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfError(f"{path}: {error}") from error
    tokens = [match[0] for match in _TOKEN.finditer(text) if not match[0].startswith("#")]
    try:
        yield from _block(iter(tokens), folder, inner=False)
    except IndexError as error:
        raise ConfError(f"{path} is no configuration of nginx; `nginx -t` says more") from error


def _block(tokens: Iterator[str], folder: Path, *, inner: bool) -> Iterator[Directive]:
    words: list[str] = []
    for token in tokens:
        match token:
            case "}" if inner and not words:
                return
            case "}":
                raise IndexError("an end without a begin, or a directive without an end")
            case "{":
                yield Directive(words[0], tuple(words[1:]), tuple(_block(tokens, folder, inner=True)))
                words = []
            case ";":
                if words[0] == "include":
                    for included in _included(folder / words[1]):
                        yield from _file(included, folder)
                else:
                    yield Directive(words[0], tuple(words[1:]))
                words = []
            case _:
                words.append(token[1:-1] if token[0] in "\"'" else token)
    if words or inner:
        raise IndexError("a directive or a block without an end")


def _included(name: Path) -> list[Path]:
    """A name with wildcards may match nothing."""
    return sorted(Path(name.anchor).glob(str(name.relative_to(name.anchor)))) if has_magic(str(name)) else [name]


def _way(conf: Directive, path: str) -> tuple[list[Directive], Directive] | None:
    """The location that nginx takes for a path with the blocks around it, innermost first, and its upstream.

    A server without an upstream there is passed over: it is one that redirects.
    """
    for http in conf.all("http"):
        for server in http.all("server"):
            location = _location(list(server.all("location")), path)
            if location is not None and (upstream := _upstream(http, location)) is not None:
                return [location, server, http], upstream
    return None


def _location(locations: Sequence[Directive], path: str) -> Directive | None:
    longest: Directive | None = None
    for each in locations:
        match each.arguments:
            case ("=", exact) if exact == path:
                return each
            case (prefix,) | ("^~", prefix) if path.startswith(prefix):
                if longest is None or len(prefix) > len(longest.arguments[-1]):
                    longest = each
    if longest is not None and longest.arguments[0] == "^~":
        return longest
    for each in locations:
        if each.arguments[0] in {"~", "~*"} and _matches(each.arguments[1], path):
            return each
    return longest


def _matches(pattern: str, path: str) -> bool:
    pythonic = pattern.replace(r"\z", r"\Z").replace("(?<", "(?P<").replace("(?P<!", "(?<!").replace("(?P<=", "(?<=")
    try:
        return re.search(pythonic, path) is not None
    except re.error:
        return False


def _upstream(http: Directive, location: Directive) -> Directive | None:
    target = next((each.arguments[0] for each in location.all("proxy_pass")), "")
    name = target.partition("://")[2].partition("/")[0]
    return next((each for each in http.all("upstream") if each.arguments[0] == name), None)


def _zone(upstreams: Iterable[Directive]) -> Finding:
    lacking = [each.arguments[0] for each in upstreams if not any(each.all("zone"))]
    return failed("conf.zone", f"no zone in {', '.join(lacking)}") if lacking else ok("conf.zone", "shared")


def _hash(upstreams: Iterable[Directive]) -> Finding:
    for each in upstreams:
        key = next((found.arguments for found in each.all("hash")), ())
        if not key:
            return failed("conf.hash", f"{each.arguments[0]} has no hash")
        if re.search(r"\$\{?(request_uri|uri|request|document_uri|args)\b", key[0]):
            return failed("conf.hash", f"{each.arguments[0]} hashes {key[0]}")
        if key[1:] != ("consistent",):
            return failed("conf.hash", f"{each.arguments[0]} hashes without `consistent`")
    return ok("conf.hash", "one key, consistent")


def _timeout(ways: Sequence[Sequence[Directive]], longest_silence_s: float) -> Finding:
    for way in ways:
        written = next(
            (found.arguments[0] for block in way for found in block.all("proxy_read_timeout")), _DEFAULT_TIMEOUT
        )
        if _seconds(written) < longest_silence_s:
            return failed(
                "conf.timeout", f"proxy_read_timeout is {written}, a quiet terminal lives {longest_silence_s:.0f} s"
            )
    return ok("conf.timeout", f"at least {longest_silence_s:.0f} s")


def _seconds(written: str) -> float:
    return sum(float(amount) * _UNITS[unit or "s"] for amount, unit in re.findall(r"(\d+)(ms|[smhdwMy]?)", written))
