"""Custom resource definitions at work: from a definition that was written to resources that are served, and back.

The real server does this with several controllers; here one follower of the store does it, in the order of the writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubewright.controlplane.embedded.catalog import Catalog
from kubewright.controlplane.embedded.document import JSONObject, copied_object, inside, items, text
from kubewright.controlplane.embedded.schema.custom import custom_resources
from kubewright.controlplane.embedded.schema.names import accepted, is_true
from kubewright.controlplane.embedded.storage import Conflict, Entry, Store

PREFIX = "/apiextensions.k8s.io/customresourcedefinitions/"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


class Definitions:
    """Keeps the catalog in step with the definitions in the store. `settled` is set whenever nothing is left to do."""

    def __init__(self, store: Store, catalog: Catalog, now: Callable[[], str]) -> None:
        self._store = store
        self._catalog = catalog
        self._now = now

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        subscription = self._store.watch(PREFIX, self._store.revision)
        try:
            for entry in self._store.range(PREFIX).entries:
                self._sync(entry)
            while changes := await subscription.changes():
                for change in changes:
                    name = text(change.entry.value, "metadata", "name")
                    current = self._store.get(change.entry.key)
                    if current is None:
                        self._catalog.withdraw(name)
                    elif current.revision == change.entry.revision:
                        self._sync(current)
        finally:
            subscription.close()

    def _sync(self, entry: Entry) -> None:
        definition = entry.value
        if text(definition, "metadata", "deletionTimestamp"):
            self._clean_up(entry)
            return
        others = [other.value for other in self._store.range(PREFIX).entries if other.key != entry.key]
        updated = accepted(definition, others, self._now())
        if CLEANUP not in items(updated, "metadata", "finalizers") and is_true(updated, "Established"):
            updated = copied_object(updated)
            metadata = inside(updated, "metadata")
            metadata["finalizers"] = [*items(metadata, "finalizers"), CLEANUP]
        if updated != definition:
            # The write comes back as a change, and is served then.
            self._write(entry, updated)
            return
        if is_true(definition, "Established"):
            self._catalog.define(text(definition, "metadata", "name"), custom_resources(definition))

    def _clean_up(self, entry: Entry) -> None:
        """The objects of a definition go before it does."""
        definition = entry.value
        if CLEANUP not in items(definition, "metadata", "finalizers"):
            return
        prefix = f"/{text(definition, 'spec', 'group')}/{text(definition, 'spec', 'names', 'plural')}/"
        remaining = self._store.range(prefix).entries
        for instance in remaining:
            if not items(instance.value, "metadata", "finalizers"):
                self._store.delete(instance.key, expected=instance.revision)
        if self._store.range(prefix, limit=1).entries:
            # Their finalizers keep them; whoever removes the last one wakes this again.
            asyncio.get_running_loop().call_later(0.1, self._retry, entry.key)
            return
        updated = copied_object(definition)
        metadata = inside(updated, "metadata")
        metadata["finalizers"] = [name for name in items(metadata, "finalizers") if name != CLEANUP]
        if metadata["finalizers"]:
            self._write(entry, updated)
        else:
            del metadata["finalizers"]
            self._store.delete(entry.key, expected=entry.revision, final=updated)

    def _retry(self, key: str) -> None:
        entry = self._store.get(key)
        if entry is not None:
            self._sync(entry)

    def _write(self, entry: Entry, updated: JSONObject) -> None:
        try:
            self._store.update(entry.key, copied_object(updated), expected=entry.revision)
        except Conflict:
            return  # the newer write is on its way here
