"""Terminal sessions in PostgreSQL. Every transition is one conditional statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.kernel.rates import Rate
from bothy_server.terminal.app.ports import Live, Moved, NewSession, Pairing, SessionPage, SessionRecord, SessionView
from bothy_server.terminal.domain.session import SessionState
from bothy_wire.frames import CloseReason, OpenFailure
from bothy_wire.ids import DeviceId, HostId, PersonId, SessionId

COLUMNS = """
    s.id, s.host_id, s.person_id, s.device_id, s.attach_seq, s.profile, s."session_user" AS as_user, s.state,
    s.close_reason, s.close_detail, s.boot_id, s.opened_at, s.paired_at, s.paired_seq, s.started_at, s.detached_at,
    s.closed_at, s.expires_at, h.reported_require_local_confirm AS local_confirm
"""
"""What a record is made of, of a session ``s`` and its host ``h``."""

CARRIED = """
    (EXISTS (SELECT FROM host_owners o WHERE o.host_id = s.host_id AND o.person_id = s.person_id)
     OR EXISTS (SELECT FROM host_grants g WHERE g.host_id = s.host_id AND g.person_id = s.person_id
                AND g."right" = 'terminal' AND g."session_user" = s."session_user"
                AND (g.expires_at IS NULL OR g.expires_at > now())))
"""
"""Whether the person of a session ``s`` may still be there as its user."""

_ADD = text(f"""
    WITH s AS (
        INSERT INTO terminal_sessions (id, host_id, person_id, device_id, profile, "session_user", expires_at)
        VALUES (:id, :host_id, :person_id, :device_id, :profile, :session_user,
                now() + make_interval(secs => :max_duration_s))
        RETURNING *
    ) SELECT {COLUMNS} FROM s JOIN hosts h ON h.id = s.host_id
""")
_ROWS = text(f"SELECT {COLUMNS} FROM terminal_sessions s JOIN hosts h ON h.id = s.host_id WHERE s.id = ANY(:ids)")
_LOCK = text(
    f"SELECT {COLUMNS} FROM terminal_sessions s JOIN hosts h ON h.id = s.host_id WHERE s.id = :id FOR UPDATE OF s"
)
_VIEW = f"""
    SELECT {COLUMNS}, h.name AS host_name, p.name AS person_name, d.name AS device_name, s.bytes_in, s.bytes_out
    FROM terminal_sessions s JOIN hosts h ON h.id = s.host_id JOIN devices d ON d.id = s.device_id
      JOIN persons p ON p.id = s.person_id
"""
_PAGE = "(CAST(:before AS uuid) IS NULL OR s.id < :before) ORDER BY s.id DESC LIMIT :limit"
# Said outright, so that the indexes of what has not ended serve.
_LIVE_PAGE = f"s.state <> 'closed' AND {_PAGE}"
_VIEW_OF_ONE = text(f"{_VIEW} WHERE s.id = :id")


def _views(whose: str) -> dict[bool, TextClause]:
    """By whether those that ended are wanted, too."""
    return {True: text(f"{_VIEW} WHERE {whose} {_PAGE}"), False: text(f"{_VIEW} WHERE {whose} {_LIVE_PAGE}")}


_VIEWS_OF_PERSON = _views("s.person_id = :person_id AND")
_VIEWS_OF_HOST = _views("s.host_id = :host_id AND")
_VIEWS_OF_ALL = _views("")
_LIVE_OF_HOST = text(f"""
    SELECT {COLUMNS} FROM terminal_sessions s JOIN hosts h ON h.id = s.host_id
    WHERE s.host_id = :host_id AND s.state <> 'closed'
""")
_LOCK_COUNTS = text("SELECT pg_advisory_xact_lock(:first), pg_advisory_xact_lock(:second)")
_LIVE = """
    SELECT count(*) AS live, extract(epoch FROM min(expires_at) - clock_timestamp()) AS ends_in_s
    FROM terminal_sessions WHERE {whose} AND state <> 'closed'
"""
_LIVE_OF_PERSON = text(_LIVE.format(whose="person_id = :person_id"))
_LIVE_ON_HOST = text(_LIVE.format(whose="host_id = :host_id"))
# The newest one that stands in the way; after it has left the period there is room.
_TOO_EARLY = text("""
    SELECT extract(epoch FROM opened_at - clock_timestamp()) + :period_s AS wait_s
    FROM terminal_sessions
    WHERE person_id = :person_id AND opened_at > clock_timestamp() - make_interval(secs => :period_s)
    ORDER BY opened_at DESC OFFSET :before LIMIT 1
""")
_ATTACH = text(f"""
    UPDATE terminal_sessions s SET attach_seq = attach_seq + 1, device_id = :device_id FROM hosts h
    WHERE s.id = :id AND s.state <> 'closed' AND h.id = s.host_id RETURNING {COLUMNS}
""")
# One statement: the right, the device, the host and the newest attach are judged in the moment of the write.
_PAIR = text(f"""
    WITH was AS (SELECT id, state FROM terminal_sessions WHERE id = :id FOR UPDATE)
    UPDATE terminal_sessions s
    SET paired_seq = paired_seq + 1, paired_at = coalesce(paired_at, now()), last_frame_at = now(),
        boot_id = h.boot_id, detached_at = NULL,
        state = CASE s.state WHEN 'detached' THEN 'active' ELSE s.state END
    FROM was, hosts h, devices d, persons p
    WHERE s.id = was.id AND h.id = s.host_id AND d.id = s.device_id AND p.id = s.person_id
      AND s.state <> 'closed' AND s.attach_seq = :attach_seq
      AND h.state = 'active' AND d.revoked_at IS NULL AND p.disabled_at IS NULL
      AND {CARRIED}
    RETURNING {COLUMNS}, d.channel_key, was.state = 'detached' AS reactivated
""")
_DETACH = text(f"""
    UPDATE terminal_sessions s SET state = 'detached', detached_at = now() FROM hosts h
    WHERE s.id = :id AND s.state = 'active' AND s.paired_seq = :paired_seq AND h.id = s.host_id RETURNING {COLUMNS}
""")
_START = text(f"""
    UPDATE terminal_sessions s SET state = 'active', started_at = coalesce(started_at, now()) FROM hosts h
    WHERE s.id = :id AND s.host_id = :host_id AND s.state = 'opening' AND h.id = s.host_id RETURNING {COLUMNS}
""")
# Statements over many rows lock them in one order, so that they never wait for each other.
_CLOSE = text(f"""
    WITH locked AS MATERIALIZED (
        SELECT id FROM terminal_sessions WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE terminal_sessions s SET state = 'closed', closed_at = now(), close_reason = :reason, close_detail = :detail
    FROM locked, hosts h
    WHERE s.id = locked.id AND s.state <> 'closed' AND h.id = s.host_id
      AND (NOT :never_paired OR s.paired_at IS NULL) AND (NOT :opening OR s.state = 'opening')
    RETURNING {COLUMNS}
""")
_MOVED = text("""
    WITH moved AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:bytes_in AS bigint[]), CAST(:bytes_out AS bigint[]))
            AS counted(id, bytes_in, bytes_out)
    ), locked AS MATERIALIZED (
        SELECT id FROM terminal_sessions WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE terminal_sessions s
    SET bytes_in = s.bytes_in + moved.bytes_in, bytes_out = s.bytes_out + moved.bytes_out, last_frame_at = now()
    FROM moved, locked WHERE s.id = moved.id AND s.id = locked.id
""")


class PostgresSessionStore:
    """Implements the port ``SessionStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def add(self, record_id: SessionId, new: NewSession) -> SessionRecord:
        """See the port."""
        return to_record((await self._connection.execute(_ADD, {"id": record_id, **asdict(new)})).one())

    async def rows(self, ids: Iterable[SessionId]) -> dict[SessionId, SessionRecord]:
        """See the port."""
        rows = await self._connection.execute(_ROWS, {"ids": list(ids)})
        return {SessionId(row.id): to_record(row) for row in rows}

    async def lock(self, session_id: SessionId) -> SessionRecord | None:
        """See the port."""
        return _maybe((await self._connection.execute(_LOCK, {"id": session_id})).first())

    async def view(self, session_id: SessionId) -> SessionView | None:
        """See the port."""
        row = (await self._connection.execute(_VIEW_OF_ONE, {"id": session_id})).first()
        return None if row is None else _view(row)

    async def views_of_person(self, person_id: PersonId, page: SessionPage) -> list[SessionView]:
        """See the port."""
        return await self._page(_VIEWS_OF_PERSON, page, person_id=person_id)

    async def views_of_host(self, host_id: HostId, page: SessionPage) -> list[SessionView]:
        """See the port."""
        return await self._page(_VIEWS_OF_HOST, page, host_id=host_id)

    async def views_of_all(self, page: SessionPage) -> list[SessionView]:
        """See the port."""
        return await self._page(_VIEWS_OF_ALL, page)

    async def live_of_host(self, host_id: HostId) -> list[SessionRecord]:
        """See the port."""
        return [to_record(row) for row in await self._connection.execute(_LIVE_OF_HOST, {"host_id": host_id})]

    async def live(self, person_id: PersonId, host_id: HostId) -> tuple[Live, Live]:
        """See the port."""
        # A statement of its own: the counts must see what the former holder committed. In one order, so that no two wait
        # for each other.
        first, second = sorted((_lock_key(person_id), _lock_key(host_id)))
        await self._connection.execute(_LOCK_COUNTS, {"first": first, "second": second})
        of_person = (await self._connection.execute(_LIVE_OF_PERSON, {"person_id": person_id})).one()
        on_host = (await self._connection.execute(_LIVE_ON_HOST, {"host_id": host_id})).one()
        return _live(of_person), _live(on_host)

    async def opened_too_early(self, person_id: PersonId, rate: Rate) -> float:
        """See the port."""
        values = {"person_id": person_id, "period_s": rate.period_s, "before": rate.count - 1}
        found = (await self._connection.execute(_TOO_EARLY, values)).first()
        return 0.0 if found is None else float(found.wait_s)

    async def attach(self, session_id: SessionId, device_id: DeviceId) -> SessionRecord | None:
        """See the port."""
        values = {"id": session_id, "device_id": device_id}
        return _maybe((await self._connection.execute(_ATTACH, values)).first())

    async def pair(self, session_id: SessionId, attach_seq: int) -> Pairing | None:
        """See the port."""
        granted = (await self._connection.execute(_PAIR, {"id": session_id, "attach_seq": attach_seq})).first()
        if granted is not None:
            return Pairing("granted", to_record(granted), bytes(granted.channel_key), granted.reactivated)
        record = (await self.rows([session_id])).get(session_id)
        if record is None:
            return None
        if record.state is SessionState.CLOSED:
            return Pairing("closed", record)
        return Pairing("superseded" if record.attach_seq > attach_seq else "denied", record)

    async def detach(self, session_id: SessionId, paired_seq: int) -> SessionRecord | None:
        """See the port."""
        values = {"id": session_id, "paired_seq": paired_seq}
        return _maybe((await self._connection.execute(_DETACH, values)).first())

    async def start(self, session_id: SessionId, host_id: HostId) -> SessionRecord | None:
        """See the port."""
        values = {"id": session_id, "host_id": host_id}
        return _maybe((await self._connection.execute(_START, values)).first())

    async def close(
        self,
        session_ids: Collection[SessionId],
        reason: CloseReason,
        detail: OpenFailure | None = None,
        *,
        never_paired: bool = False,
        opening: bool = False,
    ) -> list[SessionRecord]:
        """See the port."""
        which = {"ids": list(session_ids), "never_paired": never_paired, "opening": opening}
        rows = await self._connection.execute(_CLOSE, {**which, "reason": reason, "detail": detail})
        return [to_record(row) for row in rows]

    async def add_moved(self, moved: Collection[Moved]) -> None:
        """See the port."""
        values = {
            "ids": [each.session_id for each in moved],
            "bytes_in": [each.bytes_in for each in moved],
            "bytes_out": [each.bytes_out for each in moved],
        }
        await self._connection.execute(_MOVED, values)

    async def _page(self, statements: Mapping[bool, TextClause], page: SessionPage, **whose: UUID) -> list[SessionView]:
        values = {"before": page.before, "limit": page.limit, **whose}
        return list(map(_view, await self._connection.execute(statements[page.closed], values)))


def _lock_key(subject: UUID) -> int:
    """The random half of an id; always negative, as the keys of the other advisory locks are not."""
    return int.from_bytes(subject.bytes[8:], signed=True)


def _live(row: Row[Any]) -> Live:
    return Live(row.live, float(row.ends_in_s or 0))


def _maybe(row: Row[Any] | None) -> SessionRecord | None:
    return None if row is None else to_record(row)


def _view(row: Row[Any]) -> SessionView:
    return SessionView(to_record(row), row.host_name, row.person_name, row.device_name, row.bytes_in, row.bytes_out)


def to_record(row: Row[Any]) -> SessionRecord:
    """From a row that has :data:`COLUMNS`."""
    return SessionRecord(
        id=SessionId(row.id),
        host_id=HostId(row.host_id),
        person_id=PersonId(row.person_id),
        device_id=DeviceId(row.device_id),
        attach_seq=row.attach_seq,
        profile=row.profile,
        session_user=row.as_user,
        state=SessionState(row.state),
        close_reason=row.close_reason,
        close_detail=row.close_detail,
        boot_id=row.boot_id,
        opened_at=row.opened_at,
        paired_at=row.paired_at,
        paired_seq=row.paired_seq,
        started_at=row.started_at,
        detached_at=row.detached_at,
        closed_at=row.closed_at,
        expires_at=row.expires_at,
        local_confirm=row.local_confirm,
    )
