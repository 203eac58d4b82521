"""Rows of persons, devices, challenges and rights."""
