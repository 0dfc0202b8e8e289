"""The store against the simplest model of one: a dict of what was put last."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.index import field_values
from kubewright.cache.store import Store

_NAMESPACES, _NAMES, _NODES = ("", "a", "b"), ("x", "y", "z"), ("", "n1", "n2")


def _entry(namespace: str, name: str, revision: int, node: str) -> CacheEntry:
    metadata = {"namespace": namespace, "name": name, "resourceVersion": str(revision)}
    return parse_entry(msgspec.json.encode({"metadata": metadata, "spec": {"nodeName": node} if node else {}}))


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.model: dict[ObjectKey, tuple[CacheEntry, str]] = {}
        self.revision = 0
        self.indexed = False

    @rule(namespace=st.sampled_from(_NAMESPACES), name=st.sampled_from(_NAMES), node=st.sampled_from(_NODES))
    def put(self, namespace: str, name: str, node: str) -> None:
        self.revision += 1
        entry = _entry(namespace, name, self.revision, node)
        before = self.model.get(entry.key)
        assert self.store.put(entry) is (before[0] if before else None)
        self.model[entry.key] = (entry, node)

    @rule(namespace=st.sampled_from(_NAMESPACES), name=st.sampled_from(_NAMES))
    def remove(self, namespace: str, name: str) -> None:
        key = ObjectKey(namespace, name)
        before = self.model.pop(key, None)
        assert self.store.remove(key) is (before[0] if before else None)

    @rule()
    def index(self) -> None:
        self.store.add_index("spec.nodeName", field_values("spec.nodeName"))
        self.indexed = True

    @invariant()
    def everything_is_found_and_nothing_else(self) -> None:
        assert {entry.key: entry for entry in self.store} == {key: entry for key, (entry, _) in self.model.items()}
        assert self.store.objects == len(self.store) == len(self.model)
        assert self.store.size == sum(len(entry.body) for entry, _ in self.model.values())
        for namespace in _NAMESPACES:
            found = {entry.key for entry in self.store.in_namespace(namespace)}
            assert found == {key for key in self.model if key.namespace == namespace}
            for name in _NAMES:
                key = ObjectKey(namespace, name)
                assert self.store.get(key) is (self.model[key][0] if key in self.model else None)

    @invariant()
    def the_index_is_exact(self) -> None:
        index = self.store.index("spec.nodeName")
        assert (index is not None) is self.indexed
        for node in _NODES if index is not None else ():
            wanted = {key: entry for key, (entry, own) in self.model.items() if own == node}
            assert index is not None
            assert index.find(node) == wanted


TestStore = StoreMachine.TestCase
