"""Kubernetes' own kinds: what each of them is filled in with, what is refused, and what may change."""
