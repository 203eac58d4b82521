"""Use cases of identity and the ports that they need."""
