"""The sweep's part of the rows: finding and ending in one statement, so that what ends is what was found."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bothy_server.terminal.adapters.postgres.sessions import CARRIED, COLUMNS, to_record
from bothy_server.terminal.app.ports import SessionRecord
from bothy_server.terminal.app.sweep import Overdue

_LOCK = int.from_bytes(b"bothyswp")
"""Advisory lock of a round; it goes with the transaction."""

_BEGIN = text("SELECT pg_try_advisory_xact_lock(:lock)")
# A locked row is judged again as it is then; one that somebody else is writing is left to the next round.
_END_OVERDUE = text(f"""
    WITH overdue AS MATERIALIZED (
        SELECT s.id, judged.reason FROM terminal_sessions s
        JOIN hosts h ON h.id = s.host_id
        CROSS JOIN LATERAL (SELECT CASE
            WHEN s.expires_at <= now() THEN 'max_duration'
            WHEN NOT {CARRIED} THEN 'revoked'
            WHEN NOT :settled THEN NULL
            WHEN s.state = 'opening' AND s.paired_at IS NULL
                AND s.opened_at < now() - make_interval(secs => :open_timeout) THEN 'open_timeout'
            WHEN s.state = 'opening' AND NOT h.reported_require_local_confirm
                AND s.paired_at < now() - make_interval(secs => :start_timeout) THEN 'start_timeout'
            WHEN s.state = 'active' AND s.last_frame_at < now() - make_interval(secs => :idle) THEN 'idle'
            WHEN s.state = 'detached' AND s.detached_at < now() - make_interval(secs => :detach_grace)
                THEN 'detach_expired'
            WHEN greatest(h.last_seen_at, s.opened_at) < now() - make_interval(secs => :host_lost) THEN 'host_lost'
        END AS reason) AS judged
        WHERE s.state <> 'closed' AND judged.reason IS NOT NULL
        ORDER BY s.id LIMIT :batch FOR UPDATE OF s SKIP LOCKED
    )
    UPDATE terminal_sessions s
    SET state = 'closed', closed_at = now(),
        close_reason = CASE WHEN reason IN ('open_timeout', 'start_timeout') THEN 'open_failed' ELSE reason END,
        close_detail = CASE WHEN reason IN ('open_timeout', 'start_timeout') THEN reason END
    FROM overdue, hosts h
    WHERE s.id = overdue.id AND s.state <> 'closed' AND h.id = s.host_id
    RETURNING {COLUMNS}
""")
# A grant's end counts whether it carries a session yet or not; an end that a round found in others' hands is due now.
_NEXT_END = text(f"""
    SELECT extract(epoch FROM least(
        (SELECT min(expires_at) FROM terminal_sessions WHERE state <> 'closed'),
        (SELECT min(expires_at) FROM host_grants WHERE expires_at > now()),
        (SELECT now() FROM terminal_sessions s WHERE s.state <> 'closed' AND NOT {CARRIED} LIMIT 1)
    ) - now())
""")
_NEVER = Overdue(0, 0, 0, 0, 0)


class PostgresSweepStore:
    """Implements the port ``SweepStore`` on one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        """Bound to the unit's connection."""
        self._connection = connection

    async def begin(self) -> bool:
        """See the port."""
        return bool((await self._connection.execute(_BEGIN, {"lock": _LOCK})).scalar_one())

    async def end_overdue(self, overdue: Overdue | None, batch: int) -> list[SessionRecord]:
        """See the port."""
        values = {"settled": overdue is not None, "batch": batch, **asdict(overdue or _NEVER)}
        return [to_record(row) for row in await self._connection.execute(_END_OVERDUE, values)]

    async def next_end(self) -> float | None:
        """See the port."""
        seconds = (await self._connection.execute(_NEXT_END)).scalar_one()
        return None if seconds is None else float(seconds)
