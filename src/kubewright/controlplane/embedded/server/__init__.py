"""The API server: the handler chain that every request runs through, and how its parts are put together."""
