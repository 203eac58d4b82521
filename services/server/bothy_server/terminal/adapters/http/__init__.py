"""REST of terminal sessions."""
