"""``bothy-host run``: everything that runs, wired once."""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from pathlib import Path

from bothy_host import authorized_devices, state
from bothy_host.clock import watch_sleep
from bothy_host.control import Control
from bothy_host.host import Host
from bothy_host.rest import fetch_jwks
from bothy_host.screens import screens
from bothy_host.sessions import Sessions
from bothy_host.settings import Settings, SettingsError
from bothy_host.state import Pairing
from bothy_host.tokens import TokenDesk
from bothy_wire.close_codes import CloseCode, text_of
from bothy_wire.signing import canonical_origin, fingerprint

STOPPED_FOR_GOOD = 3
"""Exit status that tells the service manager not to start again."""

_log = logging.getLogger(__name__)
_ADVICE = {
    CloseCode.IDENTIFY_REFUSED: "pair this host again with 'bothy-host pair'",
    CloseCode.HOST_REPAIRED: "run 'bothy-host pair' with the newest pairing code",
    CloseCode.HOST_DISABLED: "ask the host's owner to enable it, then start bothy-host again",
    CloseCode.DUPLICATE_CONNECTION: "stop the copy, then pair this host again",
    CloseCode.VERSION_UNSUPPORTED: "update bothy-host or the relay",
    CloseCode.PROTOCOL_VIOLATION: "update bothy-host or the relay",
}


def check(settings: Settings, path: Path) -> None:
    """What the settings of the file ``path`` promise and this machine must hold. Raises the error of what does not."""
    if settings.require_local_confirm:
        raise SettingsError(f"{path}: require_local_confirm: this version cannot ask at the host yet; set it to false")
    if not settings.profile:
        raise SettingsError(
            f"{path}: no profile is configured, so there is nothing to run; add a table like [profile.shell] with"
            ' users = ["alex"]'
        )
    if settings.authorized_devices is not None:
        authorized_devices.read(Path(settings.authorized_devices))


async def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT (0) or until the server says never (3). Raises :class:`~bothy_host.state.StateError`."""
    state_dir = Path(settings.state_dir)
    with state.locked(state_dir):
        paired = state.load(state_dir)
        if settings.server is not None and canonical_origin(settings.server) != paired.audience:
            raise SettingsError(f"server: this host is paired with {paired.audience}, not with {settings.server}")
        tls = ssl.create_default_context()
        tokens = TokenDesk(
            host_id=paired.host_id,
            leeway=settings.host.clock_leeway,
            fetch_interval=settings.host.jwks_interval,
            retry_interval=settings.host.jwks_retry,
            fetch=lambda: fetch_jwks(paired.audience, tls=tls, patience=settings.host.dial_timeout),
        )
        own = settings.host
        async with screens(patience=own.repaint_timeout, interval=own.emulator_interval) as make_screen:
            host = Host(settings, Pairing(state_dir, paired), tokens, tls, make_screen)
            _log.info("host %s, channel key %s", paired.name, fingerprint(paired.channel_public))
            return await _serve(host)


async def _serve(host: Host) -> int:
    sessions = Sessions(host)
    server = Control(host, sessions)

    def woke() -> None:
        _log.info("this machine slept; connecting anew")
        server.woke()
        sessions.woke()

    control, watch = asyncio.create_task(server.run()), asyncio.create_task(watch_sleep(woke))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, control.cancel)
    try:
        code = await control
    except asyncio.CancelledError:
        _log.info("stopping")
        return 0
    finally:
        watch.cancel()
        await sessions.stop()
    advice = _ADVICE.get(CloseCode(code)) if code in set(CloseCode) else None
    _log.error("stopped for good: %s (%d)%s", text_of(code), code, f"; {advice}" if advice else "")
    return STOPPED_FOR_GOOD
