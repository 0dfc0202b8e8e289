"""Server-side apply and managed fields: which manager owns which field of an object."""

from kubewright.controlplane.embedded.managedfields.applying import apply, unconvertible
from kubewright.controlplane.embedded.managedfields.configuring import merge_configuration
from kubewright.controlplane.embedded.managedfields.empty import empty_object
from kubewright.controlplane.embedded.managedfields.scale import entries_after_scale, scale_entries
from kubewright.controlplane.embedded.managedfields.updating import same_but_for_times, track_update

__all__ = [
    "apply",
    "empty_object",
    "entries_after_scale",
    "merge_configuration",
    "same_but_for_times",
    "scale_entries",
    "track_update",
    "unconvertible",
]
