"""Paired machines: their rows, pairing, control connections and presence."""
