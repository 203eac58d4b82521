"""Rows of sessions."""
