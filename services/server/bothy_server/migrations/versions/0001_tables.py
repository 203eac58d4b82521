"""The tables of the relay: people and devices, hosts, terminal sessions, the event log and the audit log.

Ids are UUIDv7 made by the application. Instants are the database's ``now()``. Codes and challenges are kept as SHA-256
only. Two column names are reserved words of SQL and must be quoted: ``"session_user"`` (unquoted it silently means the
connected role) and ``"right"``.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

PEOPLE = """
CREATE TABLE persons (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (octet_length(name) BETWEEN 1 AND 64),
    is_operator boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    disabled_at timestamptz
);

CREATE TABLE devices (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES persons,
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    kind text NOT NULL CHECK (kind IN ('cli', 'browser')),
    signing_key bytea NOT NULL UNIQUE CHECK (octet_length(signing_key) = 32),
    channel_key bytea NOT NULL UNIQUE CHECK (octet_length(channel_key) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX devices_person ON devices (person_id);

CREATE TABLE invites (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES persons,
    code_hash bytea NOT NULL UNIQUE CHECK (octet_length(code_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX invites_expiry ON invites (expires_at);
"""

HOSTS = """
CREATE TABLE hosts (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'active', 'disabled', 'retired')),
    disabled_reason text,
    signing_key bytea UNIQUE CHECK (octet_length(signing_key) = 32),
    channel_key bytea UNIQUE CHECK (octet_length(channel_key) = 32),
    pairing_seq integer NOT NULL DEFAULT 0,
    boot_id uuid,
    last_conn_id uuid,
    join_confirmed bigint NOT NULL DEFAULT 0,
    join_offered bigint NOT NULL DEFAULT 0,
    reported_profiles jsonb NOT NULL DEFAULT '{}',
    reported_require_local_confirm boolean NOT NULL DEFAULT false,
    reported_os text,
    reported_arch text,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz
);
-- A retired host gives its name free.
CREATE UNIQUE INDEX hosts_name ON hosts (name) WHERE state <> 'retired';

CREATE TABLE host_owners (
    host_id uuid NOT NULL REFERENCES hosts,
    person_id uuid NOT NULL REFERENCES persons,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (host_id, person_id)
);
CREATE INDEX host_owners_person ON host_owners (person_id);

-- One row per session user that the person may become.
CREATE TABLE host_grants (
    host_id uuid NOT NULL REFERENCES hosts,
    person_id uuid NOT NULL REFERENCES persons,
    "right" text NOT NULL CHECK ("right" IN ('terminal')),
    "session_user" text NOT NULL CHECK (octet_length("session_user") BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    PRIMARY KEY (host_id, person_id, "right", "session_user")
);
CREATE INDEX host_grants_person ON host_grants (person_id);

CREATE TABLE pairing_codes (
    id uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES hosts,
    code_hash bytea NOT NULL UNIQUE CHECK (octet_length(code_hash) = 32),
    attempts integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX pairing_codes_host ON pairing_codes (host_id);
CREATE INDEX pairing_codes_expiry ON pairing_codes (expires_at);
"""

PROOFS = """
-- A login challenge names a device; one for a step-up also names what the device is about to do.
CREATE TABLE challenges (
    id uuid PRIMARY KEY,
    challenge_hash bytea NOT NULL UNIQUE CHECK (octet_length(challenge_hash) = 32),
    purpose text NOT NULL CHECK (purpose IN ('login', 'open', 'attach')),
    device_id uuid NOT NULL REFERENCES devices,
    person_id uuid NOT NULL REFERENCES persons,
    host_id uuid REFERENCES hosts,
    profile text,
    "session_user" text,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX challenges_expiry ON challenges (expires_at);

CREATE TABLE step_ups (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES persons,
    device_id uuid NOT NULL REFERENCES devices,
    purpose text NOT NULL CHECK (purpose IN ('open', 'attach')),
    host_id uuid NOT NULL REFERENCES hosts,
    profile text,
    "session_user" text,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    consumed_at timestamptz
);
CREATE INDEX step_ups_expiry ON step_ups (expires_at);

CREATE TABLE idempotency_keys (
    person_id uuid NOT NULL REFERENCES persons,
    device_id uuid NOT NULL REFERENCES devices,
    key text NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 128),
    request_hash bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    made_id uuid,
    attach_seq integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (person_id, device_id, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
"""

SESSIONS = """
CREATE TABLE terminal_sessions (
    id uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES hosts,
    person_id uuid NOT NULL REFERENCES persons,
    device_id uuid NOT NULL REFERENCES devices,
    attach_seq integer NOT NULL DEFAULT 1,
    profile text NOT NULL,
    "session_user" text NOT NULL,
    state text NOT NULL DEFAULT 'opening' CHECK (state IN ('opening', 'active', 'detached', 'closed')),
    close_reason text CHECK (close_reason IN (
        'client_closed', 'closed_by_owner', 'process_exited', 'open_failed', 'idle', 'max_duration', 'detach_expired',
        'host_disabled', 'host_retired', 'host_repaired', 'host_restarted', 'host_lost', 'revoked')),
    close_detail text CHECK (close_detail IN (
        'open_timeout', 'start_timeout', 'refused', 'profile_unknown', 'user_unknown', 'local_confirm_denied',
        'spawn_failed')),
    boot_id uuid,
    opened_at timestamptz NOT NULL DEFAULT now(),
    paired_at timestamptz,
    paired_seq integer NOT NULL DEFAULT 0,
    last_frame_at timestamptz,
    started_at timestamptz,
    detached_at timestamptz,
    closed_at timestamptz,
    expires_at timestamptz NOT NULL,
    bytes_in bigint NOT NULL DEFAULT 0,
    bytes_out bigint NOT NULL DEFAULT 0,
    CONSTRAINT closed_with_reason CHECK ((state = 'closed') = (close_reason IS NOT NULL)),
    CONSTRAINT closed_at_instant CHECK ((state = 'closed') = (closed_at IS NOT NULL)),
    CONSTRAINT detail_of_open_failed CHECK (close_detail IS NULL OR close_reason IS NOT DISTINCT FROM 'open_failed')
);
CREATE INDEX terminal_sessions_host ON terminal_sessions (host_id, state);
CREATE INDEX terminal_sessions_person ON terminal_sessions (person_id, state);
CREATE INDEX terminal_sessions_live_device ON terminal_sessions (device_id) WHERE state <> 'closed';
CREATE INDEX terminal_sessions_live_expiry ON terminal_sessions (expires_at) WHERE state <> 'closed';
"""

LOGS = """
CREATE TABLE event_log (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type text NOT NULL,
    host_id uuid,
    session_id uuid,
    person_id uuid,
    device_id uuid,
    node_id uuid,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Rows up to and including this position may be gone. The pruner raises it before it deletes.
CREATE TABLE event_log_floor (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    position bigint NOT NULL
);
INSERT INTO event_log_floor (position) VALUES (0);

-- Names no other table, so that it outlives every row it speaks of.
CREATE TABLE audit_log (
    position bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    action text NOT NULL,
    code text NOT NULL CHECK (code ~ '^[a-z][a-z0-9_.]{0,63}$'),
    person_id uuid,
    device_id uuid,
    host_id uuid,
    session_id uuid,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32)
);

CREATE FUNCTION bothy_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% only grows', TG_TABLE_NAME;
END $$;
CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION bothy_refuse_change();
"""


def upgrade() -> None:
    for part in (PEOPLE, HOSTS, PROOFS, SESSIONS, LOGS):
        op.execute(part)
