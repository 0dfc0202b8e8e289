"""Talking to a Kubernetes API server: configuration, transport, and the typed `Client` on top."""

from kubewright.client.client import Client as Client
from kubewright.client.config.config import Config as Config
from kubewright.client.listing import Listing as Listing
from kubewright.client.patch import JSONPatch as JSONPatch
from kubewright.client.patch import MergePatch as MergePatch
from kubewright.client.patch import StrategicMergePatch as StrategicMergePatch
from kubewright.client.patch import patch_from as patch_from
from kubewright.client.token_bucket import TokenBucket as TokenBucket
from kubewright.client.watch import Watch as Watch
from kubewright.client.watch import WatchEvent as WatchEvent
