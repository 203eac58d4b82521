"""Rules of events: pure."""
