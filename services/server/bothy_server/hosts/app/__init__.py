"""Use cases of hosts and the ports that they need."""
