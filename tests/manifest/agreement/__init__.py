"""Whether a type and the server that has its definition agree on what is valid, tried with random types and values."""
