"""What the operator can be told by flags and by environment variables."""

from __future__ import annotations

from kubewright import Model


class Options(Model):
    """How users and requests are treated."""
