"""Sessions: their rows, the rendezvous of their sides, and the data plane between them."""
