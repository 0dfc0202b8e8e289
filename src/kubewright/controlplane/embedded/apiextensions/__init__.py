"""CustomResourceDefinitions: which of them are accepted, how they come into force, and what they serve."""
