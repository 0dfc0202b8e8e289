"""Every CPython that kubewright supports, found on this machine or fetched; `make test` runs on each."""
