"""Devbox: an operator for development environments, whose content survives their pods."""

from .committer import CommitFailed, CommitProgress, Committed, Committer, Committing
from .job_committer import JobCommitter
from .memory import InMemoryCommitter, InMemoryRegistry
from .options import Options
from .program import devbox_manager, setup
from .reconciler import DevboxReconciler, devbox_pipeline
from .registry import ImageMissing, Registry
from .release_reconciler import DevBoxReleaseReconciler
from .release_types import DevBoxRelease, DevBoxReleaseSpec, DevBoxReleaseStatus
from .types import Config, Devbox, DevboxSpec, DevboxStatus, Network
from .v1alpha1 import DevboxV1Alpha1, DevboxV1Alpha1Spec, DevboxV1Alpha1Status

__all__ = [
    "CommitFailed",
    "CommitProgress",
    "Committed",
    "Committer",
    "Committing",
    "Config",
    "DevBoxRelease",
    "DevBoxReleaseReconciler",
    "DevBoxReleaseSpec",
    "DevBoxReleaseStatus",
    "Devbox",
    "DevboxReconciler",
    "DevboxSpec",
    "DevboxStatus",
    "DevboxV1Alpha1",
    "DevboxV1Alpha1Spec",
    "DevboxV1Alpha1Status",
    "ImageMissing",
    "InMemoryCommitter",
    "InMemoryRegistry",
    "JobCommitter",
    "Network",
    "Options",
    "Registry",
    "devbox_manager",
    "devbox_pipeline",
    "setup",
]
