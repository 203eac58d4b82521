"""Use cases of sessions, the switchboard, and the ports that they need."""
