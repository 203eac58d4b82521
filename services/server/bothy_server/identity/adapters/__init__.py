"""Identity's technologies: REST, PostgreSQL, the key store."""
