"""The codec and the rules of the listener."""
