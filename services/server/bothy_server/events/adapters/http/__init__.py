"""REST of events."""
