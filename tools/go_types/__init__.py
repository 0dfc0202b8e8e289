"""Writes what Kubernetes' Go types say about their fields, for the embedded control plane."""
