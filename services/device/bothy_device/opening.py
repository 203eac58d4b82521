"""``bothy open`` and ``bothy attach``: ask the server, check the host's key, dial, and give the terminal to the session."""

from __future__ import annotations

import contextlib
import os
import random
from uuid import UUID

from bothy_device import reconnect, texts
from bothy_device.choice import choose_login, find_host, find_session
from bothy_device.clock import steady
from bothy_device.events import Leave, Resized
from bothy_device.failure import Failure
from bothy_device.known_hosts import KnownHosts, Pin
from bothy_device.rest import Opened, Rest
from bothy_device.route import SessionRoute
from bothy_device.screen import complain
from bothy_device.session import Session
from bothy_device.settings import Settings
from bothy_device.state import Login
from bothy_device.terminal import run
from bothy_device.waiting import Limits
from bothy_device.way import Way
from bothy_wire.backoff import Backoff
from bothy_wire.channel import device_end, flow
from bothy_wire.limits import TERM_BYTES
from bothy_wire.printable import printable
from bothy_wire.signing import fingerprint


class Opening:
    """One person's way to a terminal."""

    def __init__(self, login: Login, settings: Settings, known_hosts: KnownHosts, *, reconnects: bool = True) -> None:
        """Without ``reconnects`` a session is left at the first loss of its connection."""
        self._login = login
        self._settings = settings
        self._known_hosts = known_hosts
        self._reconnects = reconnects
        self._greeting: str | None = None

    async def open(self, wanted: str, profile: str | None, user: str | None, host_key: str | None) -> int:
        """A new session on a host; returns the exit status."""
        async with self._rest() as rest:
            host = find_host(await rest.hosts(), wanted)
            chosen = choose_login(host, profile, user)
            if host.channel_key is not None:
                self._check(host.channel_key, host.host_id, host.name, host_key)
            opened = _of(host.host_id, None, await rest.open(host.host_id, *chosen))
            try:
                self._check(opened.host_channel_key, host.host_id, host.name, host_key)
            except Failure:
                with contextlib.suppress(Failure):  # it would run out by itself
                    await rest.close(opened.session_id)
                raise
            return await self._run(rest, opened, host.name)

    async def attach(self, prefix: str) -> int:
        """Go on with a session; returns the exit status."""
        async with self._rest() as rest:
            row = find_session(await rest.sessions(ended=True), prefix)
            opened = _of(row.host_id, row.session_id, await rest.attach(row))
            # Which host a session is on is the relay's word: it never makes a new key trusted.
            self._check(opened.host_channel_key, row.host_id, row.host_name, None, first_use=False)
            return await self._run(rest, opened, row.host_name)

    def _rest(self) -> Rest:
        return Rest(self._login.server, timeout=self._settings.device.request_timeout, login=self._login)

    def _check(self, key: bytes, host_id: UUID, name: str, named: str | None, *, first_use: bool = True) -> None:
        shown = Pin(self._login.server, host_id, fingerprint(key), name)
        strict = self._settings.device.strict_host_keys or not first_use
        said = self._known_hosts.check(shown, named=named, strict=strict)
        if said:
            self._greeting = said
            complain(said)

    async def _run(self, rest: Rest, opened: Opened, host_name: str) -> int:
        device, channel = self._settings.device, self._settings.channel
        first = reconnect.start(steady(), opened.expires_in_s, once=not self._reconnects)
        end = device_end.DeviceEnd(
            channel_key=self._login.channel,
            host_channel_key=opened.host_channel_key,
            session_id=opened.session_id,
            host_id=opened.host_id,
            profile=opened.profile,
            session_user=opened.session_user,
            term=(os.environ.get("TERM") or "dumb")[:TERM_BYTES],
            limits=flow.Limits(handshake_timeout=channel.handshake_timeout, input_window=channel.input_window),
        )

        def build(size: Resized, person: bool, now: float) -> Session:
            return Session(
                end,
                session_id=opened.session_id,
                host_name=host_name,
                escape=self._settings.escape if person else None,
                size=size,
                limits=Limits(device.paste_bytes, device.input_buffer_bytes, channel.fail_grace),
                now=now,
                way=Way(
                    first,
                    backoff=Backoff(cap=device.backoff_cap),
                    chance=random.random,
                    session_id=opened.session_id,
                    host=printable(host_name),
                    person=person,
                ),
                greeting=self._greeting if person else None,
            )

        leave = await run(SessionRoute(self._login, self._settings, opened), self._settings.wire, build)
        message = await self._message(rest, opened.session_id, leave)
        if message:
            complain(message)
        return leave.status

    async def _message(self, rest: Rest, session_id: UUID, leave: Leave) -> str | None:
        """The close reason does not tell why an opening failed, nor what was revoked; the server does."""
        match leave.reason:
            case "open_failed":
                with contextlib.suppress(Failure):
                    return texts.ended("open_failed", (await rest.session(session_id)).close_detail)
            case "revoked":
                try:
                    await rest.session(session_id)
                except Failure as failure:
                    if failure.code in {"device_revoked", "person_disabled"}:
                        return f"closed by the relay: {failure.message}"
        return leave.message


def _of(host_id: UUID, session_id: UUID | None, opened: Opened) -> Opened:
    """What the relay opened, if it is what was asked for."""
    if opened.host_id != host_id or session_id not in (None, opened.session_id):
        raise Failure("the relay answers for another host or session than the one asked for; nothing was opened")
    return opened
