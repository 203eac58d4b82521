"""The settings file ``/etc/bothy/host.toml``: strict, typed, with the nearest name for a wrong one.

Numbers are seconds or bytes. ``docs/operations/host.md`` is the reference and is checked against these classes.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from bothy_host.dial import Manner
from bothy_host.repaint import RESET
from bothy_wire import channel, limits
from bothy_wire.backoff import Backoff
from bothy_wire.signing import canonical_origin

DEFAULT_PATH = Path("/etc/bothy/host.toml")

Positive = Annotated[float, Meta(gt=0)]
Length = Annotated[float, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=4096)]
Count = Annotated[int, Meta(ge=1, le=1024)]
Name = Annotated[str, Meta(min_length=1, max_length=limits.NAME_BYTES)]


T = TypeVar("T")

_TYPES = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
    "|": "or",
    "Object missing required field": "missing is",
}
_TYPE = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in _TYPES))
"""What msgspec calls types, and what a person who writes TOML calls them."""


class SettingsError(Exception):
    """The settings cannot be used. The message is one line for the operator."""


class HostSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Table ``[host]``: limits of this host; of a limit that the server has too, the lower one holds."""

    replay_bytes: Bytes = 2 * 1024 * 1024
    repaint_bytes: Bytes = 256 * 1024
    repaint_timeout: Positive = 1
    emulator_interval: Positive = 60
    hold_output: Length = 60
    exit_linger: Length = 600
    close_linger: Length = 10
    hup_grace: Length = 5
    max_sessions: Count = 64
    idle_timeout: Positive = 12 * 3600
    idle_grace: Length = 60
    detach_grace: Positive = 12 * 3600
    max_duration: Positive = 24 * 3600
    clock_leeway: Length = 5
    jwks_interval: Positive = 60
    jwks_retry: Positive = 5
    backoff_cap: Positive = 15
    backoff_settle: Positive = 60
    dial_timeout: Positive = 10
    close_timeout: Positive = 2
    ping_interval: Positive = 20
    ping_timeout: Positive = 20
    max_frame_bytes: Bytes = 64 * 1024 + 256

    def backoff(self) -> Backoff:
        """The steps of the reconnect rule; their starting values belong to the protocol."""
        return Backoff(cap=self.backoff_cap, settle=self.backoff_settle)

    def manner(self) -> Manner:
        """How connections to the relay behave."""
        return Manner(
            dial_timeout=self.dial_timeout,
            close_timeout=self.close_timeout,
            ping_interval=self.ping_interval,
            ping_timeout=self.ping_timeout,
            max_frame_bytes=self.max_frame_bytes,
        )


class ChannelSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Table ``[channel]``: the end-to-end channel."""

    handshake_timeout: Positive = 10
    fail_grace: Positive = 1
    input_window: Bytes = 64 * 1024
    output_window: Bytes = 256 * 1024
    output_window_min: Bytes = 16 * 1024
    output_window_max: Bytes = 1024 * 1024

    def limits(self) -> channel.Limits:
        """What the channel itself needs of these."""
        return channel.Limits(
            handshake_timeout=self.handshake_timeout,
            input_window=self.input_window,
            output_window=self.output_window,
            output_window_min=self.output_window_min,
            output_window_max=self.output_window_max,
        )


class Profile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Table ``[profile.NAME]``: something that a session may run."""

    command: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)] | None = None
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    users: Annotated[list[Name], Meta(max_length=64)] | Name
    max_sessions: Count = 32

    @property
    def allowed(self) -> list[str]:
        """The accounts that a session of this profile may run as, by name or as ``@group``."""
        return [self.users] if isinstance(self.users, str) else self.users


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    server: str | None = None
    state_dir: str = "/var/lib/bothy-host"
    authorized_devices: str | None = None
    require_local_confirm: bool = False
    local_confirm_timeout: Positive = 60
    allow_root: bool = False
    host: HostSettings = field(default_factory=HostSettings)
    channel: ChannelSettings = field(default_factory=ChannelSettings)
    profile: Annotated[dict[Name, Profile], Meta(max_length=64)] = field(default_factory=dict)


def load(path: Path | None) -> Settings:
    """Read the file; without ``path`` the default one, which may be missing. Raises :class:`SettingsError`."""
    chosen = path or DEFAULT_PATH
    try:
        text = chosen.read_text(encoding="utf-8")
    except FileNotFoundError:
        if path is None:
            return Settings()
        raise SettingsError(f"{chosen}: there is no such file") from None
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{chosen}: cannot be read: {error}") from error
    return parse(text, str(chosen))


def parse(text: str, origin: str) -> Settings:
    """The settings in a TOML text; ``origin`` is named in errors. Raises :class:`SettingsError`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{origin}: {error}") from error
    _refuse_unknown(data, Settings, "", origin)
    profiles = data.pop("profile", {})
    settings = _converted(data, Settings, origin, "")
    if not isinstance(profiles, dict):
        raise SettingsError(f"{origin}: profile: tables [profile.NAME] are needed")
    # One by one, because an error inside a dictionary does not tell the key.
    made = {name: _converted(table, Profile, origin, f"profile.{name}") for name, table in profiles.items()}
    settings = _converted(msgspec.structs.asdict(settings) | {"profile": made}, Settings, origin, "")
    _check(settings, origin)
    return settings


def _converted(data: Any, kind: type[T], origin: str, prefix: str) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        words, _, place = str(error).replace("`", "").partition(" - at ")
        where = (prefix + place.replace("$", "")).replace(" .", " ").lstrip(".")
        plain = _TYPE.sub(lambda match: _TYPES[match.group()], words)
        raise SettingsError(f"{origin}: {where}: {plain[:1].lower()}{plain[1:]}") from error


def _refuse_unknown(data: dict[str, Any], kind: type[Struct], prefix: str, origin: str) -> None:
    known = kind.__struct_fields__
    hints = get_type_hints(kind)
    for name, value in data.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else f"; known are {', '.join(known)}"
            raise SettingsError(f"{origin}: {prefix}{name} is not a setting{hint}")
        match value:
            case dict() if kind is Settings and name == "profile":
                for profile, table in value.items():
                    if isinstance(table, dict):
                        _refuse_unknown(table, Profile, f"profile.{profile}.", origin)
            case dict() if isinstance(hints[name], type) and issubclass(hints[name], Struct):
                _refuse_unknown(value, hints[name], f"{prefix}{name}.", origin)
            case _:
                pass


def _check(settings: Settings, origin: str) -> None:
    if settings.server is not None:
        try:
            canonical_origin(settings.server)
        except ValueError as error:
            raise SettingsError(f"{origin}: server is no address of a relay like https://relay.example.com") from error
    if settings.host.repaint_bytes > settings.host.replay_bytes:
        raise SettingsError(f"{origin}: host.repaint_bytes is larger than host.replay_bytes")
    if settings.host.repaint_bytes + len(RESET) > limits.REPAINT_TOTAL_BYTES:
        raise SettingsError(
            f"{origin}: host.repaint_bytes is not below {limits.REPAINT_TOTAL_BYTES}, the most that a device takes"
        )
    windows = settings.channel
    if not windows.output_window_min <= windows.output_window <= windows.output_window_max:
        raise SettingsError(f"{origin}: channel.output_window is not between output_window_min and output_window_max")
    if windows.output_window_max > limits.OUTPUT_WINDOW_BYTES:
        raise SettingsError(
            f"{origin}: channel.output_window_max is above {limits.OUTPUT_WINDOW_BYTES}, the most that a device takes"
        )
    for name, profile in settings.profile.items():
        if profile.command is not None and not Path(profile.command[0]).is_absolute():
            raise SettingsError(f"{origin}: profile.{name}.command must begin with an absolute path")
        if "root" in profile.allowed and not settings.allow_root:
            raise SettingsError(f"{origin}: profile.{name}.users names root, which needs allow_root = true")
