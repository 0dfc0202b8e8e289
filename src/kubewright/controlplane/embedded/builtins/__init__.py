"""Kubernetes' own kinds: their defaults, their validation, and what may change."""
