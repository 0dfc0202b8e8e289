"""Server-side apply and managed fields: who set which field of an object, and what follows from that."""

from kubewright.controlplane.embedded.managedfields.applying import apply as apply
from kubewright.controlplane.embedded.managedfields.applying import unconvertible as unconvertible
from kubewright.controlplane.embedded.managedfields.empty import empty_object as empty_object
from kubewright.controlplane.embedded.managedfields.scale import entries_after_scale as entries_after_scale
from kubewright.controlplane.embedded.managedfields.scale import scale_entries as scale_entries
from kubewright.controlplane.embedded.managedfields.updating import same_but_for_times as same_but_for_times
from kubewright.controlplane.embedded.managedfields.updating import track_update as track_update
