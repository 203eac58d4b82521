"""Reading the event log, and who may see what of it."""
