"""One session's way: where to dial with the stream token of now, and how to get the next one."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from bothy_device import texts
from bothy_device.clock import steady
from bothy_device.failure import Failure, Unreachable
from bothy_device.rest import Opened, Rest
from bothy_device.settings import Settings
from bothy_device.state import Login
from bothy_device.stream import Stream, dial
from bothy_wire.limits import stream_path
from bothy_wire.unreachable import explain


class SessionRoute:
    """The :class:`~bothy_device.connector.Route` of a session that the relay opened or attached."""

    def __init__(self, login: Login, settings: Settings, opened: Opened) -> None:
        self._login = login
        self._settings = settings
        self._opened = opened

    def dial(self) -> AbstractAsyncContextManager[Stream]:
        """An identified connection."""
        return dial(
            self._login,
            stream_path(self._opened.session_id),
            self._opened.stream_token,
            self._opened.session_id,
            wire=self._settings.wire,
            patience=self._settings.device.request_timeout,
        )

    async def attach(self, *, take: bool) -> float:
        """A new stream token. Each time with new connections: of the old ones nobody knows whether they are alive.

        A session that somebody holds on another device is not taken away from them unless ``take`` says so.
        """
        patience = self._settings.device.request_timeout
        try:
            async with asyncio.timeout(patience), Rest(self._login.server, timeout=patience, login=self._login) as rest:
                row = await rest.session(self._opened.session_id)
                if row.state == "closed":
                    raise Failure(texts.ended(row.close_reason or "", row.close_detail), code="session_closed")
                if row.device_id != self._login.device_id and row.state != "detached" and not take:
                    raise Failure(texts.problem("replaced", ""), code="replaced")
                opened = await rest.attach(row)
        except TimeoutError as error:
            raise Unreachable(explain(self._login.server, error)) from error
        if (opened.session_id, opened.host_channel_key) != (self._opened.session_id, self._opened.host_channel_key):
            raise Failure("the relay answers with another session or another key of the host; nothing was sent to it")
        self._opened = opened
        return steady() + opened.expires_in_s
