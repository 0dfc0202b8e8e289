"""The benchmarks: kubewright beside its peers, in CPU seconds, in one run. `python -m bench` runs all."""
