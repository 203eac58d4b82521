"""The schema: ``versions/`` in order, applied by ``run.py``."""
