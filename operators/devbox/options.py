"""What the operator can be told by flags and by environment variables."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from kubewright import KubernetesError, Meta, Model, Quantity


class Options(Model):
    """How the pods, the volumes and the commits of Devboxes are made."""

    storage_class: Annotated[str, Meta(description="the class of volumes (default: that of the cluster)")] = ""
    storage_size: Annotated[str, Meta(description="the size of volumes of a Devbox without a storageLimit")] = "10Gi"
    archive_image: Annotated[str, Meta(min_length=1, description="an image with sh, tar, gzip and mktemp")] = (
        "busybox:1.37"
    )
    commit_timeout: Annotated[timedelta, Meta(description="how long one attempt to commit may take")] = timedelta(
        hours=1
    )
    commit_retry: Annotated[timedelta, Meta(description="how long to wait after a failed attempt")] = timedelta(
        seconds=10
    )
    commit_tries: Annotated[int, Meta(ge=1, description="how often to try to commit")] = 30
    request_share: Annotated[int, Meta(ge=1, description="pods request cpu and memory of their limits divided by")] = 10
    ephemeral_storage: Annotated[str, Meta(description="the limit of ephemeral storage of a Devbox without one")] = (
        "10Gi"
    )
    max_ephemeral_storage: Annotated[str, Meta(description="the highest limit of ephemeral storage")] = "50Gi"
    ephemeral_storage_request: Annotated[str, Meta(description="the ephemeral storage that pods request")] = "500Mi"
    runtime_handler: Annotated[str, Meta(description="the containerd runtime handler that pods are annotated with")] = (
        ""
    )

    def check(self) -> None:
        """Raise an error that names the option whose value cannot be used."""
        for name in ("storage_size", "ephemeral_storage", "max_ephemeral_storage", "ephemeral_storage_request"):
            try:
                amount = Quantity(getattr(self, name))
            except ValueError as error:
                raise KubernetesError(f"--{name.replace('_', '-')}: {error}") from None
            if amount <= Quantity(0):
                raise KubernetesError(f"--{name.replace('_', '-')} is {amount}: expected more than 0")
        for name in ("commit_timeout", "commit_retry"):
            if getattr(self, name) < timedelta(seconds=1):
                raise KubernetesError(f"--{name.replace('_', '-')} is {getattr(self, name)}: expected at least 1s")
