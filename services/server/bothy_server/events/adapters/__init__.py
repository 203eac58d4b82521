"""The technologies of events: REST, PostgreSQL."""
