"""Compares what other versions of kubectl print on the embedded control plane and on the real one."""
