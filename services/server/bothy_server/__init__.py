"""The server of bothy: REST, sockets, the rendezvous, signals between nodes. See README.md for the map."""
