"""A node that leaves in order says so in its row, and how many hosts are still connected to it (``docs/spec/cluster.md``, N2)."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

DRAIN = """
ALTER TABLE cluster_nodes DROP CONSTRAINT cluster_nodes_state_check,
    ADD CONSTRAINT cluster_nodes_state_check CHECK (state IN ('active', 'draining', 'leaving'));
ALTER TABLE node_status ADD COLUMN controls integer NOT NULL DEFAULT 0;
"""


def upgrade() -> None:
    op.execute(DRAIN)
