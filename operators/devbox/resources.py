"""How much the containers of a Devbox may use, and how much of that they request.

All containers have limits, also those that fill and archive volumes: namespaces with quotas admit no others.
"""

from __future__ import annotations

from kubewright import Quantity
from kubewright.api.core.v1 import ResourceRequirements

from .options import Options
from .types import Devbox

_EPHEMERAL = "ephemeral-storage"
_ORDINARY = ("cpu", "memory", _EPHEMERAL)


def resources(devbox: Devbox, options: Options) -> ResourceRequirements:
    """The resources of the Devbox as limits; of cpu and memory only a share is requested."""
    limits = dict(devbox.spec.resource)
    ephemeral = limits.get(_EPHEMERAL, Quantity(options.ephemeral_storage))
    limits[_EPHEMERAL] = min(ephemeral, Quantity(options.max_ephemeral_storage))
    requests = {_EPHEMERAL: min(Quantity(options.ephemeral_storage_request), limits[_EPHEMERAL])}
    if "cpu" in limits:
        requests["cpu"] = Quantity(f"{max(1, limits['cpu'].milli_value // options.request_share)}m")
    if "memory" in limits:
        requests["memory"] = Quantity(int(limits["memory"]) // options.request_share)
    return ResourceRequirements(limits=limits, requests=requests)


def ordinary_resources(devbox: Devbox, options: Options) -> ResourceRequirements:
    """The same without devices, which scripts have no use for."""
    whole = resources(devbox, options)
    limits = {name: amount for name, amount in whole.limits.items() if name in _ORDINARY}
    return ResourceRequirements(limits=limits, requests=whole.requests)
