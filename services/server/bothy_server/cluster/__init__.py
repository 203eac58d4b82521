"""Signals between nodes: carries them and knows no feature."""
