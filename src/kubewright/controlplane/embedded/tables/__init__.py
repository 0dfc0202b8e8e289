"""Objects as rows: the tables that `kubectl get` requests, for every kind that is served."""

from kubewright.controlplane.embedded.tables.table import table_of, watch_presentation

__all__ = ["table_of", "watch_presentation"]
