"""Looks at an installation from outside and names what is set up wrong."""
