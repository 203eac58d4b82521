"""The transports: one node, and several over PostgreSQL."""
