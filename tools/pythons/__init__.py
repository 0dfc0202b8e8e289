"""Every CPython that kubewright supports, found on this machine or fetched; `make pythons` tests on each."""
