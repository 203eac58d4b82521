"""Ports, and the way from a payload to its handlers."""
