"""Talking to a Kubernetes API server: configuration, transport, and the typed `Client` on top."""

from kubewright.client.backoff import Backoff
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.listing import PagedList
from kubewright.client.patch import JSONPatch, MergePatch, StrategicMergePatch, patch_from
from kubewright.client.request_observer import RequestAttempt, RequestObserver
from kubewright.client.token_bucket import TokenBucket
from kubewright.client.watch import Watch, WatchEvent

__all__ = [
    "Backoff",
    "Client",
    "Config",
    "JSONPatch",
    "MergePatch",
    "PagedList",
    "RequestAttempt",
    "RequestObserver",
    "StrategicMergePatch",
    "TokenBucket",
    "Watch",
    "WatchEvent",
    "patch_from",
]
