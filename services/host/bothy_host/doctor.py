"""``bothy-host doctor``: what is set up wrong on this machine, looked at as the account that runs it.

Nothing is changed. The relay is asked for its greeting only, so that a service that runs is not taken for a copy.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from websockets.exceptions import ConnectionClosed

from bothy_host import authorized_devices, emulator_link, service, state
from bothy_host.accounts import AccountRefused, account_for
from bothy_host.authorized_devices import AuthorizedDevicesError
from bothy_host.dial import DialError, close_code, dialled, leave
from bothy_host.settings import Profile, Settings, SettingsError
from bothy_host.state import State, StateError
from bothy_wire.close_codes import CloseCode, text_of
from bothy_wire.errors import FrameError
from bothy_wire.frames import Decoder, HostHello
from bothy_wire.limits import CONTROL_PATH, CONTROL_SUBPROTOCOL, PROTOCOL_VERSION
from bothy_wire.signing import fingerprint

UNITS = (Path("/etc/systemd/system/bothy-host.service"), Path("/usr/lib/systemd/system/bothy-host.service"))
_UNIT = {"RestartPreventExitStatus": "3", "KillMode": "mixed"}
_CLOCK_S = 60.0
"""A clock this wrong is in the way of certificates; sessions go by the relay's."""

_hello = Decoder(HostHello)


class Verdict(StrEnum):
    """``unseen``: it could not be looked at; the line says why."""

    OK = "ok"
    FAILED = "failed"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. ``fix`` says what to do where something failed."""

    check: str
    verdict: Verdict
    seen: str
    fix: str = ""


async def examine(settings: Settings, path: Path, units: Sequence[Path] = UNITS) -> list[Finding]:
    """All lines, for the settings of the file ``path``; a check that fails hides no other."""
    found = [
        _settings(settings, path),
        *_accounts(settings),
        _devices(settings),
        _terminal(),
        await _screen(),
        _unit(units),
    ]
    paired = _load(settings)
    found.append(_state(settings, paired))
    return [*found, *(await _relay(settings, paired))]


def _settings(settings: Settings, path: Path) -> Finding:
    fix = f"the service decides by this file who may run what: correct it, chown root and chmod 644 {path}"
    try:
        service.check(settings, path)
    except AuthorizedDevicesError:
        pass  # has a line of its own
    except SettingsError as error:
        return Finding("settings", Verdict.FAILED, str(error), fix)
    try:
        open_to_others = authorized_devices.others_may_write(path.stat())
    except OSError as error:
        return Finding("settings", Verdict.FAILED, f"{path}: {error.strerror}", fix)
    if open_to_others:
        return Finding("settings", Verdict.FAILED, f"{path}: another account may write it", fix)
    return Finding("settings", Verdict.OK, str(path))


def _accounts(settings: Settings) -> Iterator[Finding]:
    for name, profile in settings.profile.items():
        refused = list(_refused(profile, allow_root=settings.allow_root))
        fix = "create it, take it out of the profile, or run the service as root"
        yield (
            Finding(f"profile {name}", Verdict.FAILED, "; ".join(refused), fix)
            if refused
            else Finding(f"profile {name}", Verdict.OK, f"runs as {', '.join(profile.allowed)}")
        )


def _refused(profile: Profile, *, allow_root: bool) -> Iterator[str]:
    for user in profile.allowed:
        try:
            if user.startswith("@"):
                grp.getgrnam(user[1:])
            else:
                account_for(user, profile.allowed, allow_root=allow_root)
        except AccountRefused as error:
            yield str(error)
        except KeyError:
            yield f"there is no group {user[1:]} on this host"
    if profile.command is not None and not os.access(profile.command[0], os.X_OK):
        yield f"{profile.command[0]} cannot be executed"


def _devices(settings: Settings) -> Finding:
    if settings.authorized_devices is None:
        return Finding("devices", Verdict.OK, "every device that the relay admits")
    path = Path(settings.authorized_devices)
    fix = f"a line is what 'bothy device show' prints; chown root and chmod 644 {path}, 755 the folders above it"
    try:
        lines = authorized_devices.read(path).lines
    except AuthorizedDevicesError as error:
        return Finding("devices", Verdict.FAILED, str(error), fix)
    return Finding("devices", Verdict.OK, f"{len(lines)} in {path}")


def _terminal() -> Finding:
    try:
        for descriptor in os.openpty():
            os.close(descriptor)
    except OSError as error:
        return Finding("terminal", Verdict.FAILED, f"no pseudo-terminal: {error.strerror}", "mount /dev/pts")
    return Finding("terminal", Verdict.OK, "pseudo-terminals can be opened")


async def _screen() -> Finding:
    if emulator_link.installed():
        with contextlib.suppress(OSError):
            async with emulator_link.started():
                return Finding("screen", Verdict.OK, "who attaches later sees the screen as it is")
    return Finding("screen", Verdict.UNSEEN, "no terminal emulator; who attaches later sees the end of the output")


def _unit(units: Sequence[Path]) -> Finding:
    path = next((each for each in units if each.is_file()), None)
    if path is None:
        return Finding("unit", Verdict.UNSEEN, "no unit of systemd; whatever starts the service must respect status 3")
    values = dict(line.split("=", 1) for line in path.read_text(errors="replace").splitlines() if "=" in line)
    wrong = [f"{key}={value}" for key, value in _UNIT.items() if values.get(key, "").strip() != value]
    fix = "compare with bothy-host.service of this release, then systemctl daemon-reload"
    return (
        Finding("unit", Verdict.FAILED, f"{path} lacks {' and '.join(wrong)}", fix)
        if wrong
        else Finding("unit", Verdict.OK, str(path))
    )


def _load(settings: Settings) -> State | StateError:
    try:
        return state.load(Path(settings.state_dir))
    except StateError as error:
        return error


def _state(settings: Settings, paired: State | StateError) -> Finding:
    folder = Path(settings.state_dir)
    fix = "as the account of the service: 'bothy-host pair URL' with a new code, once the folder is its own and 0700"
    if isinstance(paired, StateError):
        return Finding("state", Verdict.FAILED, str(paired), fix)
    try:
        state.check_folder(folder)
    except (StateError, OSError) as error:
        return Finding("state", Verdict.FAILED, str(error), fix)
    seen = f"paired with {paired.audience} as {paired.name}, channel key {fingerprint(paired.channel_public)}"
    return Finding("state", Verdict.OK, seen)


async def _relay(settings: Settings, paired: State | StateError) -> list[Finding]:
    """The way to the relay, and both clocks."""
    if isinstance(paired, StateError):
        return [Finding(check, Verdict.UNSEEN, "this host is not paired") for check in ("relay", "clock")]
    fix = "this machine must reach the relay as a browser does: name service, proxy, certificates (SSL_CERT_FILE)"
    try:
        hello = await _greeting(settings, paired.audience)
    except (DialError, FrameError) as error:
        failed = Finding("relay", Verdict.FAILED, str(error), fix)
        return [failed, Finding("clock", Verdict.UNSEEN, "the relay was not reached")]
    return [_protocol(paired.audience, hello), _clock(hello)]


async def _greeting(settings: Settings, audience: str) -> HostHello:
    """Raises :class:`DialError` or :class:`FrameError`."""
    manner, tls = settings.host.manner(), ssl.create_default_context()
    async with dialled(audience, CONTROL_PATH, CONTROL_SUBPROTOCOL, manner, tls) as socket:
        try:
            async with asyncio.timeout(manner.dial_timeout):
                hello = _hello.decode(await socket.recv())
        except TimeoutError:
            raise DialError(f"{audience} said nothing in {manner.dial_timeout:.0f} s") from None
        except ConnectionClosed as error:
            raise DialError(f"{audience}: {text_of(close_code(error))}") from error
        await leave(socket, CloseCode.NORMAL)
    assert isinstance(hello, HostHello)
    return hello


def _protocol(audience: str, hello: HostHello) -> Finding:
    if not hello.protocol_min <= PROTOCOL_VERSION <= hello.protocol_max:
        spoken = (
            f"{audience} speaks protocol {hello.protocol_min} to {hello.protocol_max}, this host {PROTOCOL_VERSION}"
        )
        return Finding("relay", Verdict.FAILED, spoken, "update bothy-host or the relay")
    return Finding("relay", Verdict.OK, f"{audience} greets")


def _clock(hello: HostHello) -> Finding:
    wrong = time.time() - hello.server_time
    if abs(wrong) > _CLOCK_S:
        return Finding("clock", Verdict.FAILED, f"{wrong:+.0f} s from the relay's", "run a time service (NTP)")
    return Finding("clock", Verdict.OK, f"{wrong:+.1f} s from the relay's")
