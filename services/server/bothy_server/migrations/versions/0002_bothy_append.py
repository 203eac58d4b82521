"""``bothy_append``: everything a unit of work tells the world, as one statement right before its COMMIT.

Audit and event rows are written under one advisory lock that is held until the commit is visible. So the audit chain has
one previous row, and positions of the event log become visible in their order (``docs/spec/data.md``).
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"

# The canonical row: nine lines, an absent id is an empty line, the instant counts microseconds. No field holds a line
# feed, so no two rows have the same text. bothy_server/platform/audit.py computes the same.
AUDIT_HASH = r"""
CREATE FUNCTION bothy_audit_hash(previous bytea, entry audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256(previous || convert_to(concat_ws(E'\n',
        entry.position, (extract(epoch FROM entry.at) * 1000000)::bigint, entry.action, entry.code,
        coalesce(entry.person_id::text, ''), coalesce(entry.device_id::text, ''),
        coalesce(entry.host_id::text, ''), coalesce(entry.session_id::text, '')), 'UTF8'))
$$;
"""

# plpgsql, because each of its statements reads with a snapshot of its own: what is read after the lock is current.
# The lock's number is the word "bothylog".
APPEND = """
CREATE FUNCTION bothy_append(audit jsonb, events jsonb, signals jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    latest audit_log;
    entry audit_log;
    head bigint;
BEGIN
    IF jsonb_array_length(audit) + jsonb_array_length(events) > 0 THEN
        PERFORM pg_advisory_xact_lock(x'626f7468796c6f67'::bigint);
    END IF;

    IF jsonb_array_length(audit) > 0 THEN
        SELECT * INTO latest FROM audit_log ORDER BY position DESC LIMIT 1;
        FOR entry IN
            SELECT coalesce(latest.position, 0) + number, now(), fields->>'action', fields->>'code',
                   (fields->>'person_id')::uuid, (fields->>'device_id')::uuid,
                   (fields->>'host_id')::uuid, (fields->>'session_id')::uuid, NULL
            FROM jsonb_array_elements(audit) WITH ORDINALITY AS entries(fields, number) ORDER BY number
        LOOP
            entry.hash := bothy_audit_hash(coalesce(latest.hash, ''), entry);
            INSERT INTO audit_log SELECT entry.*;
            latest := entry;
        END LOOP;
    END IF;

    IF jsonb_array_length(events) > 0 THEN
        WITH written AS (
            INSERT INTO event_log (type, host_id, session_id, person_id, device_id, node_id)
            SELECT fields->>'type', (fields->>'host_id')::uuid, (fields->>'session_id')::uuid,
                   (fields->>'person_id')::uuid, (fields->>'device_id')::uuid, (fields->>'node_id')::uuid
            FROM jsonb_array_elements(events) WITH ORDINALITY AS entries(fields, number) ORDER BY number
            RETURNING position
        )
        SELECT max(position) INTO head FROM written;
        PERFORM pg_notify('event_log', head::text);
    END IF;

    PERFORM pg_notify('ephemeral', payload) FROM jsonb_array_elements_text(signals) AS payloads(payload);
END $$;
"""


def upgrade() -> None:
    op.execute(AUDIT_HASH)
    op.execute(APPEND)
