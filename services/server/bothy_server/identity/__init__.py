"""Persons and their devices, tokens, step-up and rights."""
