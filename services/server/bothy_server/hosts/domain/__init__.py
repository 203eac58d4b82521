"""Rules of hosts: pure."""
