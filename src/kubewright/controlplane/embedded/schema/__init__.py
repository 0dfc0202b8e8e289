"""Custom resource definitions: what their structural schemas mean, and which of them the server accepts."""
