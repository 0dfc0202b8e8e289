"""Establishing custom resource definitions: from a stored definition to served resources, and back.

The real server does this with several controllers; here one follower of the store does it, in the order of the writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.custom import Past, custom_resources, unreadable_version
from kubewright.controlplane.embedded.apiextensions.names import accepted, condition_holds
from kubewright.controlplane.embedded.apiextensions.termination import CLEANUP, completed, failed, in_progress
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.managedfields import track_update
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.rest.freshness import unlistable
from kubewright.controlplane.embedded.storage.store import MemoryStore, RevisionConflict, StoredObject

PREFIX = "/apiextensions.k8s.io/customresourcedefinitions/"
_RETRY = 0.1


class DefinitionController:
    """Keeps the catalog in step with the definitions in the store, and deletes their objects with them."""

    def __init__(self, store: MemoryStore, catalog: Catalog, now: Callable[[], str]) -> None:
        self._store = store
        self._catalog = catalog
        self._now = now
        self._served: dict[str, JSONObject] = {}
        self._since: dict[str, int] = {}
        self._forms: dict[str, set[str]] = {}

    async def run(self) -> None:
        """Follow the definitions until cancelled."""
        subscription = self._store.watch(PREFIX, self._store.revision)
        try:
            for entry in self._store.range(PREFIX).entries:
                self._sync(entry)
            while changes := await subscription.changes():
                for change in changes:
                    current = self._store.get(change.entry.key)
                    if current is None:
                        self._withdraw(change.entry.value)
                    elif current.revision == change.entry.revision:
                        self._sync(current)
        finally:
            subscription.close()

    def _sync(self, entry: StoredObject) -> None:
        definition = entry.value
        if text(definition, "metadata", "deletionTimestamp"):
            self._clean_up(entry)
            return
        others = [other.value for other in self._store.range(PREFIX).entries if other.key != entry.key]
        updated = accepted(definition, others, self._now())
        if updated != definition:
            # The write comes back as a change, and is served then.
            self._write(entry, updated)
        elif condition_holds(definition, "Established"):
            self._serve(definition)

    def _serve(self, definition: JSONObject) -> None:
        """Serve the versions of a definition. When they have changed, open watches are ended."""
        name, before = text(definition, "metadata", "name"), self._served.get(text(definition, "metadata", "name"))
        if before is not None:
            if _served_part(before) == _served_part(definition):
                return
            if _schemas(before) != _schemas(definition) or _storage(before) != _storage(definition):
                self._since[name] = self._store.revision
            self._store.end_watches(_prefix(definition))
        self._served[name] = definition
        self._forms.setdefault(name, set()).add(_storage(definition))
        self._store.store_as(_prefix(definition), _storage(definition))
        self._catalog.define(
            name, custom_resources(definition, self._store, Past(self._since.get(name, 0), self._dropped(definition)))
        )

    def _dropped(self, definition: JSONObject) -> frozenset[str]:
        """The versions that objects were ever stored in, and which the definition has no longer."""
        present = {text(version, "name") for version in items(definition, "spec", "versions")}
        return frozenset(self._forms.get(text(definition, "metadata", "name"), set()) - present)

    def _withdraw(self, definition: JSONObject) -> None:
        name = text(definition, "metadata", "name")
        self._catalog.withdraw(name)
        self._store.end_watches(_prefix(definition))
        self._served.pop(name, None)
        self._since.pop(name, None)
        self._forms.pop(name, None)

    def _clean_up(self, entry: StoredObject) -> None:
        """Delete the objects of a definition before it is removed."""
        definition = entry.value
        if CLEANUP not in items(definition, "metadata", "finalizers"):
            return
        instances, dropped = self._store.range(_prefix(definition)).entries, self._dropped(definition)
        unreadable = next((instance.form for instance in instances if instance.form in dropped), "")
        if unreadable:
            # Until the definition has that version again.
            names = mapping(definition, "status", "acceptedNames")
            gvk = GroupVersionKind(text(definition, "spec", "group"), _storage(definition), text(names, "kind"))
            stuck = failed(definition, unlistable(gvk, unreadable_version(definition, unreadable)), self._now())
            if stuck != definition:
                self._write(entry, stuck)
            return
        started = in_progress(definition, self._now())
        if started != definition:
            self._write(entry, started)
            return
        for instance in instances:
            self._delete(instance)
        if self._store.range(_prefix(definition), limit=1).entries:
            # Their finalizers keep them.
            asyncio.get_running_loop().call_later(_RETRY, self._retry, entry.key)
            return
        updated = completed(definition, self._now())
        if items(updated, "metadata", "finalizers"):
            self._write(entry, updated)
        else:
            self._store.delete(entry.key, expected=entry.revision, final=self._tracked(definition, updated))

    def _delete(self, instance: StoredObject) -> None:
        """Delete an object, or mark it for those whose finalizers keep it."""
        if not items(instance.value, "metadata", "finalizers"):
            self._store.delete(instance.key, expected=instance.revision)
        elif not text(instance.value, "metadata", "deletionTimestamp"):
            marked = copied_object(instance.value)
            metadata = inside(marked, "metadata")
            generation = metadata.get("generation")
            metadata["deletionTimestamp"] = self._now()
            metadata["deletionGracePeriodSeconds"] = 0
            metadata["generation"] = (generation if isinstance(generation, int) else 0) + 1
            self._store.update(instance.key, marked, expected=instance.revision)

    def _retry(self, key: str) -> None:
        entry = self._store.get(key)
        if entry is not None:
            self._sync(entry)

    def _write(self, entry: StoredObject, updated: JSONObject) -> None:
        try:
            self._store.update(entry.key, self._tracked(entry.value, updated), expected=entry.revision)
        except RevisionConflict:
            return  # the newer write is on its way here

    def _tracked(self, before: JSONObject, updated: JSONObject) -> JSONObject:
        """A change of a definition's status, as one that the server itself made."""
        new = copied_object(updated)
        track_update(
            before,
            new,
            manager="kube-apiserver",
            api_version="apiextensions.k8s.io/v1",
            subresource="status",
            time=self._now(),
            structure=structure_of(CustomResourceDefinition),
            reset=[("metadata",), ("spec",)],
        )
        return new


def _prefix(definition: JSONObject) -> str:
    return f"/{text(definition, 'spec', 'group')}/{text(definition, 'spec', 'names', 'plural')}/"


def _served_part(definition: JSONObject) -> tuple[JSONObject, JSONObject]:
    """What of a definition decides about how its objects are served."""
    return mapping(definition, "spec"), mapping(definition, "status", "acceptedNames")


def _storage(definition: JSONObject) -> str:
    """The version that objects are stored in."""
    versions = items(definition, "spec", "versions")
    return next((text(version, "name") for version in versions if mapping(version).get("storage") is True), "")


def _schemas(definition: JSONObject) -> list[JSONObject]:
    return [mapping(version, "schema") for version in items(definition, "spec", "versions")]
