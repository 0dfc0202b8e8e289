"""How a path is parsed, and what is served besides objects: discovery, health, the version, the index of paths."""
