"""Use cases of events and the ports that they need."""
