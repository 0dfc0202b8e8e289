"""The programs that envtest starts (kube-apiserver and etcd), on the embedded server: for suites of Go projects.

`programs.py` lays them down, `kube_apiserver.py` and `etcd.py` are what they run.
"""
