"""The pure rules of the terminal: no I/O, no clock, no technology."""
