"""The verbs: reading, writing and deleting objects of any kind, by the rules of its `ResourceType`."""
