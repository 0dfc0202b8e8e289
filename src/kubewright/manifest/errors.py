"""The error of types that cannot be rendered as a manifest."""

from __future__ import annotations

from kubewright.api.errors import KubernetesError


class ManifestError(KubernetesError):
    """A type that a manifest cannot express; the message names the class, the field and the fix."""
