"""What the internal listener answers about a node's place in the cluster."""
