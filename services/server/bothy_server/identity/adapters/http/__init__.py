"""REST of login and step-up, and the published keys."""
