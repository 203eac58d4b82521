"""Rules of identity: pure."""
