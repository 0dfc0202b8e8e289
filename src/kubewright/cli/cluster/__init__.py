"""What commands do to a cluster: they show it first, ask where it is not a local one, and wait until it is so."""
