"""Values and structural schemas: validation, defaults, pruning, and which schemas are structural."""
