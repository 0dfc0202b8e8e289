"""What etcd is to kube-apiserver: objects under one growing revision, with history and watches."""
