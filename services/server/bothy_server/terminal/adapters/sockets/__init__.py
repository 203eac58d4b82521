"""WebSockets: the sides of a session, and the data plane between them."""
