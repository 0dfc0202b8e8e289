"""The real kube-apiserver, etcd and kube-controller-manager behind the interface of every control plane."""

from kubewright.controlplane.real.plane import RealControlPlane

__all__ = ["RealControlPlane"]
