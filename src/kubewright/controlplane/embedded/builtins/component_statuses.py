"""ComponentStatuses, which are stored nowhere: the real server asks its components when it is asked.

Here scheduler, controllers and store are in the process that answers, so they are healthy.
"""

from __future__ import annotations

from kubewright.controlplane.embedded.registry.converted import SeenStore
from kubewright.controlplane.embedded.rest.call import ObjectStore
from kubewright.controlplane.embedded.storage.store import Range
from kubewright.controlplane.embedded.storage.stored_object import StoredObject

_PREFIX = "/core/componentstatuses/"
_ENTRIES = {
    f"{_PREFIX}{name}": StoredObject(
        f"{_PREFIX}{name}",
        {"metadata": {"name": name}, "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]},
        0,
        0,
    )
    for name in ("scheduler", "controller-manager", "etcd-0")
}


class ComponentStatuses(SeenStore):
    """A store of nothing but these, in the real server's order. They have no revision."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store, lambda entry: entry)

    def get(self, key: str) -> StoredObject | None:
        """See `Store`."""
        return _ENTRIES.get(key)

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """See `Store`; always all of them."""
        return Range([*_ENTRIES.values()], 0, 0)
