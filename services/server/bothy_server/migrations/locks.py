"""Locks of a migration on a system that is at work.

A change of a table waits until nobody uses it. A migration that holds some tables while it waits for others could meet a unit
of work that holds those and waits for these: one of the two would die.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembic import op

_PATIENCE_S = 30
_GAP_S = 0.02

_ALL_OR_NONE = """
DO $$
BEGIN
    FOR _ IN 1 .. {tries} LOOP
        BEGIN
            LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE NOWAIT;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep({gap});
        END;
    END LOOP;
    RAISE EXCEPTION 'the tables are in use all the time; stop the nodes, or try again when less is going on';
END $$;
"""


def lock_all(tables: Sequence[str]) -> None:
    """Hold all of these tables until the migration ends, or none of them: it waits only while it holds nothing."""
    op.execute(_ALL_OR_NONE.format(tables=", ".join(tables), tries=int(_PATIENCE_S / _GAP_S), gap=_GAP_S))
