//go:build binaries

// Package binaries pins the programs of a real control plane, so that `go mod tidy` keeps what they need.
// Nothing here is compiled into them: build.py builds the imported commands as they are published.
package binaries

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
