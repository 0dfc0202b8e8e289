"""A Kubernetes API server inside this process."""
