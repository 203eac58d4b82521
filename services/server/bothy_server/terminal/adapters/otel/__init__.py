"""What the terminal counts, as metrics."""
