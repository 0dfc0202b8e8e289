"""The storage class of a control plane that simulates volumes."""

from __future__ import annotations

from kubewright.api.markers import JSONObject

DRIVER = "csi.kubewright.dev"
"""The provisioner of storage classes whose volumes are simulated, and the CSI driver of these volumes."""


def default_storage_class() -> JSONObject:
    """The storage class of claims that name none, on a control plane that simulates volumes."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
        "volumeBindingMode": "Immediate",
    }
