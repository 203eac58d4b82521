"""What the terminal needs from outside: rows, signals, the two sides of a session as links, and a pump between them.

A *link* is one accepted stream or data socket after identify. The data plane behind these ports streams bytes and knows
no rule; rules know no bytes (``docs/architecture.md``, Data plane).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from bothy_server.kernel.rates import Rate
from bothy_server.kernel.unit import Signal
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.frames import CloseReason, OpenFailure
from bothy_wire.ids import DeviceId, HostId, PersonId, SessionId


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The row of a session, with what its host last reported about local confirmation."""

    id: SessionId
    host_id: HostId
    person_id: PersonId
    device_id: DeviceId
    attach_seq: int
    profile: str
    session_user: str
    state: SessionState
    close_reason: CloseReason | None
    close_detail: OpenFailure | None
    boot_id: UUID | None
    opened_at: datetime
    paired_at: datetime | None
    paired_seq: int
    started_at: datetime | None
    detached_at: datetime | None
    closed_at: datetime | None
    expires_at: datetime
    local_confirm: bool


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as a person sees it in a list. Bytes from and to the person are written now and then."""

    record: SessionRecord
    host_name: str
    person_name: str
    device_name: str
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Which part of a list, newest first: at most ``limit`` sessions older than ``before``; ``closed``: those that ended, too."""

    closed: bool
    before: SessionId | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Live:
    """How many sessions are not closed, and in how many seconds the first of them ends by its age."""

    count: int
    ends_in_s: float


PairOutcome = Literal["granted", "denied", "superseded", "closed"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Answer of the pairing statement: the row after it, and the device's channel key when it was granted."""

    outcome: PairOutcome
    record: SessionRecord
    channel_key: bytes = b""
    reactivated: bool = False
    """The row was ``detached`` and is ``active`` again."""


class SessionStore(Protocol):
    """Rows of sessions. Every transition is compare-and-swap; the loser gets None or False and wrote nothing."""

    async def add(self, record_id: SessionId, new: NewSession) -> SessionRecord:
        """A row in ``opening`` with ``attach_seq`` 1."""

    async def rows(self, ids: Iterable[SessionId]) -> dict[SessionId, SessionRecord]:
        """Rows by id, in one statement."""

    async def lock(self, session_id: SessionId) -> SessionRecord | None:
        """One row, held against other writers until the unit ends."""

    async def view(self, session_id: SessionId) -> SessionView | None:
        """One session."""

    async def views_of_person(self, person_id: PersonId, page: SessionPage) -> list[SessionView]:
        """Sessions of a person."""

    async def views_of_host(self, host_id: HostId, page: SessionPage) -> list[SessionView]:
        """Sessions on a host, whoever's they are."""

    async def views_of_all(self, page: SessionPage) -> list[SessionView]:
        """Everybody's."""

    async def live_of_host(self, host_id: HostId) -> list[SessionRecord]:
        """Every session of a host that is not closed."""

    async def live(self, person_id: PersonId, host_id: HostId) -> tuple[Live, Live]:
        """The sessions that are not closed: of the person, of the host. Nobody else counts either until the unit ends."""

    async def opened_too_early(self, person_id: PersonId, rate: Rate) -> float:
        """How many seconds too early one more session of the person would come, whatever became of the others; or 0."""

    async def attach(self, session_id: SessionId, device_id: DeviceId) -> SessionRecord | None:
        """Raise ``attach_seq`` of a session that is not closed and make ``device_id`` its device."""

    async def pair(self, session_id: SessionId, attach_seq: int) -> Pairing | None:
        """The check of a pairing as one statement (``docs/spec/cluster.md``, E4); None for an unknown session."""

    async def detach(self, session_id: SessionId, paired_seq: int) -> SessionRecord | None:
        """``active`` to ``detached``, only where ``paired_seq`` is still the one of the pairing that ended."""

    async def start(self, session_id: SessionId, host_id: HostId) -> SessionRecord | None:
        """``opening`` to ``active``: the program runs."""

    async def close(
        self,
        session_ids: Collection[SessionId],
        reason: CloseReason,
        detail: OpenFailure | None = None,
        *,
        never_paired: bool = False,
        opening: bool = False,
    ) -> list[SessionRecord]:
        """End sessions; ``never_paired`` and ``opening`` restrict which. Returns those that this call ended."""

    async def add_moved(self, moved: Collection[Moved]) -> None:
        """Add to ``bytes_in`` and ``bytes_out``, and set ``last_frame_at`` to now. Each session at most once."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """What an open writes."""

    host_id: HostId
    person_id: PersonId
    device_id: DeviceId
    profile: str
    session_user: str
    max_duration_s: float


@dataclass(frozen=True, slots=True)
class Moved:
    """Payload that passed since it was last written: ``bytes_in`` to the host, ``bytes_out`` to the device."""

    session_id: SessionId
    bytes_in: int
    bytes_out: int


class Signals(Protocol):
    """Signals outside any unit."""

    def send(self, signal: Signal) -> None:
        """Hand over for sending; never waits and never raises."""


class Telemetry(Protocol):
    """What the terminal counts. Plain integers: nothing here may cost on a hot path."""

    def unpaired(self, side: Literal["client", "host"]) -> None:
        """A lone side was closed 4102 (``bothy.terminal.relay.unpaired``)."""


class SideLink(Protocol):
    """One side of a session as the rules see it. No call blocks or raises; after :meth:`SideEvents.gone` all do nothing."""

    @property
    def forwarded_bytes(self) -> int:
        """Payload bytes that passed from this side to its counterparts. It only grows, and stays when the side is gone."""

    def send_text(self, text: str) -> None:
        """Send one control frame at the next border of the outgoing stream, before anything forwarded later."""

    def close(self, code: int, reason: str = "") -> None:
        """Write what is queued, then the close frame; abort after ``terminal.close_linger``."""

    def abort(self) -> None:
        """Drop the connection now."""

    def discard(self, on: bool) -> None:
        """*unpaired* while on: binary is read and dropped by its headers, one text message is taken."""


class SideEvents(Protocol):
    """What a link tells its owner. Called on the loop, never re-entrantly from within a call of the owner to the link."""

    def text(self, link: SideLink, payload: bytes) -> None:
        """One complete text message arrived (only while unpaired; elsewhere it is a violation that the link answers)."""

    def gone(self, link: SideLink, code: int) -> None:
        """The connection ended, for whatever cause: the peer's close code, our own, or 1006. Exactly once."""

    def stalled(self, link: SideLink) -> None:
        """The peer took nothing of what is queued for ``terminal.stall_timeout``."""


class Pump(Protocol):
    """Joins two links so that binary messages pass byte for byte, with back-pressure, in both directions."""

    def join(self, one: SideLink, other: SideLink) -> None:
        """From now on each forwards to the other. Text sent before is written before the first forwarded byte."""

    def part(self, one: SideLink, other: SideLink) -> None:
        """Stop forwarding. An unfinished message on a side that stays is filled up, then later text may follow."""
