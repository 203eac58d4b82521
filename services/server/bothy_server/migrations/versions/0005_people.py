"""Passkeys, logins that another device approves, attempts, and whom an audit entry is about (``docs/spec/data.md``)."""

from __future__ import annotations

from alembic import op

from bothy_server.migrations.locks import lock_all

revision = "0005"
down_revision = "0004"

DEVICES = """
ALTER TABLE devices
    ADD COLUMN added_by text NOT NULL DEFAULT 'invite' CHECK (added_by IN ('invite', 'passkey', 'approval')),
    -- A browser signs in again with a passkey after this.
    ADD COLUMN login_until timestamptz;

CREATE TABLE passkeys (
    id uuid PRIMARY KEY,
    person_id uuid NOT NULL REFERENCES persons,
    device_id uuid NOT NULL REFERENCES devices,
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
    public_key bytea NOT NULL CHECK (octet_length(public_key) BETWEEN 1 AND 2048),
    sign_count bigint NOT NULL,
    backed_up boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    removed_at timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id);
CREATE INDEX passkeys_device ON passkeys (device_id);
"""

# A device that waits to be let in shows a code to its person, who types it on another device. Codes as SHA-256 only.
LOGINS = """
CREATE TABLE device_logins (
    id uuid PRIMARY KEY,
    device_code_hash bytea NOT NULL UNIQUE CHECK (octet_length(device_code_hash) = 32),
    user_code_hash bytea NOT NULL UNIQUE CHECK (octet_length(user_code_hash) = 32),
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    signing_key bytea NOT NULL CHECK (octet_length(signing_key) = 32),
    channel_key bytea NOT NULL CHECK (octet_length(channel_key) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    polled_at timestamptz,
    decided_at timestamptz,
    person_id uuid REFERENCES persons,
    approved boolean,
    device_id uuid REFERENCES devices,
    CONSTRAINT decided_by_somebody CHECK ((decided_at IS NULL) = (approved IS NULL) AND (decided_at IS NULL) = (person_id IS NULL)),
    CONSTRAINT device_of_an_approved_one CHECK (device_id IS NULL OR approved)
);
CREATE INDEX device_logins_expiry ON device_logins (expires_at);
"""

# Nobody is known yet who logs in with a passkey; what is managed has no profile and may have no host.
PROOFS = """
ALTER TABLE challenges
    ALTER COLUMN device_id DROP NOT NULL,
    ALTER COLUMN person_id DROP NOT NULL,
    DROP CONSTRAINT challenges_purpose_check,
    ADD CONSTRAINT challenges_purpose_check CHECK (purpose IN (
        'login', 'passkey_login', 'passkey_register', 'open', 'attach', 'manage_host', 'manage_relay', 'manage_account')),
    ADD CONSTRAINT challenges_of_somebody CHECK (
        (purpose = 'passkey_login') = (device_id IS NULL) AND (device_id IS NULL) = (person_id IS NULL));
ALTER TABLE step_ups
    ALTER COLUMN host_id DROP NOT NULL,
    ADD COLUMN method text NOT NULL DEFAULT 'device_key' CHECK (method IN ('device_key', 'passkey')),
    DROP CONSTRAINT step_ups_purpose_check,
    ADD CONSTRAINT step_ups_purpose_check CHECK (purpose IN (
        'open', 'attach', 'manage_host', 'manage_relay', 'manage_account')),
    ADD CONSTRAINT step_ups_of_a_host CHECK ((purpose IN ('open', 'attach', 'manage_host')) = (host_id IS NOT NULL));
"""

# Failed attempts as one instant for each subject: when its allowance is whole again (a rate by the GCRA).
LIMITS = """
CREATE TABLE attempts (
    kind text NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 32),
    subject bytea NOT NULL CHECK (octet_length(subject) = 32),
    whole_at timestamptz NOT NULL,
    PRIMARY KEY (kind, subject)
);
CREATE INDEX attempts_whole ON attempts (whole_at);
CREATE INDEX terminal_sessions_opened ON terminal_sessions (person_id, opened_at);
"""

# A revocation looks for all that a device or person has open, the sweep for the grants that end next.
INDEXES = """
CREATE INDEX invites_person ON invites (person_id);
CREATE INDEX challenges_device ON challenges (device_id);
CREATE INDEX challenges_person ON challenges (person_id);
CREATE INDEX step_ups_device ON step_ups (device_id);
CREATE INDEX step_ups_person ON step_ups (person_id);
CREATE INDEX device_logins_device ON device_logins (device_id);
CREATE INDEX device_logins_person ON device_logins (person_id);
CREATE INDEX host_grants_end ON host_grants (expires_at) WHERE expires_at IS NOT NULL;
"""

# A row without a subject has the text that it always had, so that the chain of older rows stays whole.
AUDIT = r"""
ALTER TABLE audit_log ADD COLUMN subject_person_id uuid, ADD COLUMN subject_device_id uuid;

CREATE OR REPLACE FUNCTION bothy_audit_hash(previous bytea, entry audit_log) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256(previous || convert_to(concat_ws(E'\n',
        entry.position, (extract(epoch FROM entry.at) * 1000000)::bigint, entry.action, entry.code,
        coalesce(entry.person_id::text, ''), coalesce(entry.device_id::text, ''),
        coalesce(entry.host_id::text, ''), coalesce(entry.session_id::text, ''),
        CASE WHEN entry.subject_person_id IS NOT NULL OR entry.subject_device_id IS NOT NULL
            THEN coalesce(entry.subject_person_id::text, '') || E'\n' || coalesce(entry.subject_device_id::text, '')
        END), 'UTF8'))
$$;
"""

APPEND = """
CREATE OR REPLACE FUNCTION bothy_append(audit jsonb, events jsonb, signals jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
                   (fields->>'host_id')::uuid, (fields->>'session_id')::uuid, NULL,
                   (fields->>'subject_person_id')::uuid, (fields->>'subject_device_id')::uuid
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
    # Also those that are only referred to, since a foreign key is checked on both sides.
    lock_all(
        ["persons", "devices", "invites", "challenges", "step_ups", "host_grants", "terminal_sessions", "audit_log"]
    )
    for part in (DEVICES, LOGINS, PROOFS, LIMITS, INDEXES, AUDIT, APPEND):
        op.execute(part)
