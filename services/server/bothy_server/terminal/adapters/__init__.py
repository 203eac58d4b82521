"""The terminal's technologies: REST, sockets, PostgreSQL."""
