"""Which resources are served: their types and strategies, and the versions in which stored objects are seen."""
