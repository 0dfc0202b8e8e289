"""The patches clients send: JSON patch, merge patch and strategic merge patch, as kube-apiserver applies them."""

from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.patch.strategic import apply_strategic_patch

__all__ = ["apply_json_patch", "apply_merge_patch", "apply_strategic_patch"]
