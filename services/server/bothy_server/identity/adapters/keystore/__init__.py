"""Signing keys in a directory, and the tokens that they sign."""
