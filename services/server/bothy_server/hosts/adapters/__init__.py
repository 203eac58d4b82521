"""The hosts' technologies: REST, PostgreSQL, the control socket."""
