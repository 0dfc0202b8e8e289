"""From Python types to the manifests a cluster is given."""
