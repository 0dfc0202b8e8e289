"""The operators that the Widget benchmark compares, each a program of its own."""
