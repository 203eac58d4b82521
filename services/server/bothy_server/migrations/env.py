"""Alembic's entry: migrates the connection that :func:`bothy_server.migrations.run.upgrade` handed over."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
