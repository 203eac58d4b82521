"""Stream and data sockets until they leave ASGI: admit, accept, join (``docs/spec/protocol.md``, Sockets).

What follows is the data plane's (``forwarder.py``) and the switchboard's.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect

from bothy_server.kernel.clock import Clock
from bothy_server.kernel.unit import StorageUnavailable
from bothy_server.terminal.adapters.sockets.forwarder import ForwarderLimits, StreamForwarder
from bothy_server.terminal.adapters.sockets.heartbeat import Heartbeat
from bothy_server.terminal.app.admission import Admission
from bothy_server.terminal.app.switchboard import Switchboard
from bothy_server.terminal.domain.admission import Identity
from bothy_wire.close_codes import CloseCode, fit_reason
from bothy_wire.errors import FrameError
from bothy_wire.frames import DataHello, DataIdentify, Decoder, StreamHello, StreamIdentify, encode
from bothy_wire.ids import SessionId, parse_id
from bothy_wire.limits import CHALLENGE_BYTES, DATA_SUBPROTOCOL, STREAM_SUBPROTOCOL

_stream_frame = Decoder(StreamIdentify)
_data_frame = Decoder(DataIdentify)


@dataclass(frozen=True, slots=True)
class _Refusal(Exception):  # noqa: N818 - an outcome of the admission
    code: CloseCode
    reason: str = ""


class SideSockets:
    """Serves every stream and data socket of the node."""

    def __init__(
        self,
        admission: Admission,
        switchboard: Switchboard,
        clock: Clock,
        origins: Collection[str],
        identify_timeout: float,
        limits: ForwarderLimits,
    ) -> None:
        """``origins``: web pages of other origins may not open a stream; ``identify_timeout`` in seconds."""
        self._admission = admission
        self._switchboard = switchboard
        self._clock = clock
        self._origins = origins
        self._identify_timeout = identify_timeout
        self._limits = limits
        self.heartbeat = Heartbeat(limits, clock)

    async def stream(self, websocket: WebSocket) -> None:
        """The device's socket."""

        async def proof(session_id: SessionId, challenge: bytes, text: str) -> Identity | CloseCode:
            return await self._admission.device(session_id, challenge, _stream_frame.decode(text))

        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        hello = encode(StreamHello(challenge=challenge))
        await self._serve(websocket, STREAM_SUBPROTOCOL, hello, challenge, proof)

    async def data(self, websocket: WebSocket) -> None:
        """The host's socket."""

        async def proof(session_id: SessionId, challenge: bytes, text: str) -> Identity | CloseCode:
            return await self._admission.host(session_id, challenge, _data_frame.decode(text))

        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        hello = encode(DataHello(challenge=challenge))
        await self._serve(websocket, DATA_SUBPROTOCOL, hello, challenge, proof)

    async def _serve(
        self,
        websocket: WebSocket,
        subprotocol: str,
        hello: str,
        challenge: bytes,
        proof: Callable[[SessionId, bytes, str], Awaitable[Identity | CloseCode]],
    ) -> None:
        offered = subprotocol in websocket.scope["subprotocols"]
        await websocket.accept(subprotocol if offered else None)
        try:
            if not offered:
                raise _Refusal(CloseCode.VERSION_UNSUPPORTED, f"subprotocol {subprotocol} expected")
            session_id = self._addressed(websocket)
            await websocket.send_text(hello)
            identity = await proof(session_id, challenge, await self._first_text(websocket))
            if isinstance(identity, CloseCode):
                raise _Refusal(identity)
            if not self._switchboard.has_room(session_id):
                raise _Refusal(CloseCode.BUSY, "too many sides wait here")
        except WebSocketDisconnect:
            return
        except _Refusal as refusal:
            await self._close(websocket, refusal.code, refusal.reason)
            return
        except FrameError as error:
            await self._close(websocket, error.code, str(error))
            return
        except StorageUnavailable:
            await self._close(websocket, CloseCode.BUSY)
            return
        takeover = websocket.scope["extensions"]["bothy.takeover"]
        try:
            link = takeover(lambda _transport: StreamForwarder(self._limits, self._switchboard, self._clock))
        except OSError:
            return  # it went while its proof was checked
        self.heartbeat.watch(link)
        self._switchboard.arrived(session_id, link, identity)

    async def _close(self, websocket: WebSocket, code: int, reason: str = "") -> None:
        """A peer that does not take the close frame in time loses the connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.close_linger):
                await websocket.close(code, fit_reason(reason))

    def _addressed(self, websocket: WebSocket) -> SessionId:
        origin = websocket.headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise _Refusal(CloseCode.IDENTIFY_REFUSED, "this web page may not open a terminal")
        try:
            return SessionId(parse_id(websocket.path_params["session_id"]))
        except ValueError as error:
            raise _Refusal(CloseCode.IDENTIFY_REFUSED) from error

    async def _first_text(self, websocket: WebSocket) -> str:
        try:
            async with asyncio.timeout(self._identify_timeout):
                message = await websocket.receive()
        except TimeoutError as error:
            raise _Refusal(CloseCode.IDENTIFY_TIMEOUT) from error
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", CloseCode.ABNORMAL))
        text: str | None = message.get("text")
        if text is None:
            raise _Refusal(CloseCode.PROTOCOL_VIOLATION, "a text frame was expected")
        return text
