"""Signals over NOTIFY, and the connection that listens."""
