"""REST of hosts and their pairing."""
