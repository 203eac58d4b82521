"""The processes that share the database, and what each last said of itself (``docs/spec/cluster.md``, N5)."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

NODES = """
CREATE TABLE cluster_nodes (
    node_id uuid PRIMARY KEY,
    origin text,
    role text NOT NULL CHECK (role IN ('api', 'worker', 'all')),
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'leaving')),
    started_at timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    version text NOT NULL
);

CREATE TABLE node_status (
    node_id uuid PRIMARY KEY REFERENCES cluster_nodes ON DELETE CASCADE,
    written_at timestamptz NOT NULL DEFAULT now(),
    sides integer NOT NULL,
    pairs integer NOT NULL,
    pending integer NOT NULL,
    unpaired_client bigint NOT NULL,
    unpaired_host bigint NOT NULL,
    echo_age_s double precision,
    tail_lag_s double precision,
    forwarded_bytes bigint NOT NULL,
    key_ids text[] NOT NULL,
    signs_with text
);
"""


def upgrade() -> None:
    op.execute(NODES)
