"""What is wrong with a type that is to become a manifest."""

from __future__ import annotations

from kubewright.api.errors import KubernetesError


class ManifestError(KubernetesError):
    """A type says something a cluster cannot be told; the message names the class, the field and the way out."""
