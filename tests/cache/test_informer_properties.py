"""Informers against a model of a server: whatever is written, lost, repeated or late, no read and no event is wrong."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import cast

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import resource_info
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.index import field_values
from kubewright.cache.informer import Informer, Scope
from kubewright.cache.write_origin import WriteOrigin, base_of, origin_of
from kubewright.client import Client

_NAMESPACES, _TIERS, _NODES = ("a", "b"), ("front", "back"), ("", "n1")
_KEYS = (ObjectKey("a", "x"), ObjectKey("b", "x"))

keys = st.sampled_from(_KEYS)
tiers = st.sampled_from(_TIERS)
nodes = st.sampled_from(_NODES)
numbers = st.integers(0, 3)


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object of the server in one state."""

    key: ObjectKey
    uid: str
    revision: int
    tier: str
    node: str
    value: int
    held: bool = False
    deleting: bool = False

    @property
    def raw(self) -> bytes:
        metadata: dict[str, object] = {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "resourceVersion": str(self.revision),
            "labels": {"tier": self.tier},
        }
        if self.held:
            metadata["finalizers"] = ["example.com/hold"]
        if self.deleting:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        data = {"value": str(self.value), **({"node": self.node} if self.node else {})}
        return msgspec.json.encode({"kind": "ConfigMap", "metadata": metadata, "data": data})


@dataclasses.dataclass(frozen=True)
class Change:
    revision: int
    key: ObjectKey
    before: Thing | None
    after: Thing | None


class Server:
    """Objects, a revision that counts every write, and what happened at each."""

    def __init__(self) -> None:
        self.revision = 10
        self.objects: dict[ObjectKey, Thing] = {}
        self.changes: list[Change] = []
        self.own: set[int] = set()
        """The revisions that the program made."""
        self._count = 0

    def put(self, key: ObjectKey, tier: str, node: str, held: bool) -> Thing:
        self._count += 1
        before = self.objects.get(key)
        uid, deleting = (before.uid, before.deleting) if before is not None else (f"u{self._count}", False)
        held = before.held if before is not None and deleting else held
        after = Thing(key, uid, self.revision + 1, tier, node, self._count, held, deleting)
        self._happened(key, after)
        return after

    def delete(self, key: ObjectKey) -> Thing | None:
        """Returns the object if it is only marked, None when it is gone."""
        before = self.objects[key]
        marked = dataclasses.replace(before, revision=self.revision + 1, deleting=True) if before.held else None
        self._happened(key, marked)
        return marked

    def let_go(self, key: ObjectKey) -> None:
        self._happened(key, None)

    def at(self, revision: int) -> dict[ObjectKey, Thing]:
        state: dict[ObjectKey, Thing] = {}
        for change in self.changes:
            if change.revision <= revision:
                state.pop(change.key, None)
                if change.after is not None:
                    state[change.key] = change.after
        return state

    def restore(self, revision: int) -> None:
        self.objects = self.at(revision)
        self.changes = [change for change in self.changes if change.revision <= revision]
        self.revision = revision

    def _happened(self, key: ObjectKey, after: Thing | None) -> None:
        self.revision += 1
        self.changes.append(Change(self.revision, key, self.objects.pop(key, None), after))
        if after is not None:
            self.objects[key] = after


class Listener:
    """A subscriber that checks that the events form a chain: each starts from the state that the one before led to."""

    def __init__(self, may_go_back: bool, own: set[int] | None) -> None:
        self._may_go_back = may_go_back
        self._own = own
        self.known: dict[ObjectKey, CacheEntry] = {}
        self.complaints: list[str] = []  # not raised: an informer goes on when a subscriber fails

    def __call__(self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        entry = new or old
        assert entry is not None
        known = self.known.pop(entry.key, None)
        if new is not None:
            self.known[new.key] = new
            follows = old is known and (old is None or old.revision < new.revision or self._may_go_back)
        else:
            # A deletion has the last state, at the revision of the deletion.
            follows = old is not None and known is not None and _content(old) == _content(known)
        is_claimed = own is not None and own.made(old, new)
        if is_claimed and self._own is not None and entry.revision not in self._own:
            self.complaints.append(f"{entry} was claimed to be an own write")
        if not follows:
            self.complaints.append(f"notified of {old} -> {new}, knew {known}")


class View:
    """One informer, the watch it follows, and what its program may expect of it."""

    def __init__(self, server: Server, scope: Scope, holds: Callable[[Thing], bool], *, may_go_back: bool) -> None:
        self.server = server
        self.holds = holds
        self.transform = scope.transform
        self.informer = Informer(cast(Client, None), ConfigMap, scope)
        self.informer.add_index("data.node", field_values("data.node"))
        self.listeners: list[Listener] = []
        self.subscribe(may_go_back)
        self.mode = "empty"
        self.position = 0  # how far the watch is
        self.lists = 0
        self.to_list: list[Thing] = []
        self.expected: dict[ObjectKey, bytes] = {}
        self.forget()

    def subscribe(self, may_go_back: bool) -> None:
        # A restored server makes the same revisions again; and what a transform hides cannot be distinguished from its
        # echo.
        is_certain = not may_go_back and self.transform is None
        listener = Listener(may_go_back, self.server.own if is_certain else None)
        self.listeners.append(listener)
        self.informer.subscribe(listener)

    def forget(self, *, in_doubt: bool = False) -> None:
        self.in_doubt = in_doubt  # after a restore, until a list has shown that revisions went back
        self.written: dict[ObjectKey, int] = {}
        self.seen: set[str] = set()
        self.removed: set[str] = set()

    def body(self, thing: Thing | None) -> bytes | None:
        if thing is None or not self.holds(thing):
            return None
        return self.transform(thing.raw) if self.transform is not None else thing.raw

    def state(self, revision: int) -> dict[ObjectKey, bytes]:
        bodies = {key: self.body(thing) for key, thing in self.server.at(revision).items()}
        return {key: body for key, body in bodies.items() if body is not None}

    def bring(self, change: Change, *, listing: bool = False) -> None:
        """Notify the informer of a change as a server does whose watch has this scope."""
        if change.after is not None and self.holds(change.after):
            (self.informer.init_apply if listing else self.informer.apply)(parse_entry(change.after.raw))
        elif change.before is not None and self.holds(change.before):
            self.informer.delete(parse_entry(dataclasses.replace(change.before, revision=change.revision).raw))

    def step(self) -> bool:
        """Bring the next change; False when there is none."""
        following = next((each for each in self.server.changes if each.revision > self.position), None)
        if following is not None:
            self.bring(following, listing=self.mode == "listing")
            self.position = following.revision
        return following is not None

    def begin_list(self) -> None:
        self.mode = "listing"
        self.lists += 1
        self.position = self.server.revision
        self.to_list = [thing for thing in self.server.objects.values() if self.holds(thing)]
        self.informer.init()

    def list_one(self) -> None:
        self.informer.init_apply(parse_entry(self.to_list.pop().raw))

    def end_list(self) -> None:
        while self.to_list:
            self.list_one()
        if self.position < self.informer.revision:
            self.forget()
        self.informer.init_done(self.position)
        self.mode = "watching"

    def catch_up(self) -> None:
        if self.mode in ("empty", "gone"):
            self.begin_list()
        if self.mode == "listing":
            self.end_list()
        while self.step():
            pass
        self.position = self.server.revision
        self.informer.progress(self.position)

    def answered(
        self, key: ObjectKey, thing: Thing | None, uid: str, origin: WriteOrigin | None = None, is_new: bool = False
    ) -> None:
        """The answer to a write of the program arrives: the object is so now, or was removed."""
        if thing is not None:
            entry = parse_entry(thing.raw)
            self.informer.written(entry.key, entry.revision, thing.raw, origin)
            self.written[key] = max(self.written.get(key, 0), thing.revision)
        else:
            self.informer.removed(key, uid, is_new=is_new)
            hidden = msgspec.json.encode({"metadata": {"uid": uid}})
            if uid in self.seen or self.informer._overlay.is_removed(key, hidden):
                self.removed.add(uid)

    # What must hold

    def check_store(self) -> None:
        if self.mode == "watching":
            self.expected = self.state(self.position)
        elif self.mode == "gone":
            self.expected = {}
        stored = {entry.key: entry for entry in self.informer.select(own_writes=False)}
        if self.informer.synced.is_set():
            assert {key: entry.body for key, entry in stored.items()} == self.expected
        for listener in self.listeners:
            assert listener.known == stored
            assert listener.complaints == []
        assert self.informer.statistics.objects == len(stored)
        assert self.informer.statistics.bytes == sum(len(entry.body) for entry in stored.values())

    def check_reads(self, own_writes: bool) -> None:
        found = {key: self.informer.find(key, own_writes=own_writes) for key in _KEYS}
        shown = {key: entry for key, entry in found.items() if entry is not None}
        for namespace in ("", *_NAMESPACES):
            wanted = {key: entry for key, entry in shown.items() if namespace in ("", key.namespace)}
            selected = list(self.informer.select(namespace, own_writes=own_writes))
            assert sorted(entry.key for entry in selected) == sorted(wanted)
            assert {entry.key: entry for entry in selected} == wanted
            for node in _NODES:
                under = list(self.informer.select(namespace, ("data.node", node), own_writes=own_writes))
                assert sorted(entry.key for entry in under) == sorted(
                    key for key in wanted if _node(wanted[key]) == node
                )
                assert all(entry is wanted[entry.key] for entry in under)

    def check_own_writes(self) -> None:
        if not self.informer.synced.is_set() or self.in_doubt:
            return
        for key in _KEYS:
            entry = self.informer.find(key)
            last = self.written.get(key, 0)
            possible = [self.state(last).get(key)]
            possible += [
                self.body(each.after) for each in self.server.changes if each.revision > last and each.key == key
            ]
            assert (entry.body if entry is not None else None) in possible
            if entry is not None:
                stored = self.informer.find(key, own_writes=False)
                assert stored is None or stored.revision <= entry.revision
                assert entry.header.uid not in self.removed
                self.seen.add(entry.header.uid)


def _node(entry: CacheEntry) -> str:
    data = msgspec.json.decode(entry.body)["data"]
    return str(data.get("node", ""))


def _content(entry: CacheEntry) -> object:
    content = msgspec.json.decode(entry.body)
    del content["metadata"]["resourceVersion"]
    return content


def _without_value(raw: bytes) -> bytes:
    content = msgspec.json.decode(raw)
    del content["data"]["value"]
    return msgspec.json.encode(content)


class InformerMachine(RuleBasedStateMachine):
    """A watch of everything."""

    scope = Scope(resource_info(ConfigMap).gvk)
    disasters = False  # those that end every expectation; most runs are to go far without

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.kind_exists = True
        self.answers: list[tuple[ObjectKey, Thing | None, str, WriteOrigin | None, Callable[[], bool]]] = []
        self.listed_meanwhile = False  # while the answer to a deletion was under way
        self.view = View(self.server, self.scope, self.holds, may_go_back=self.disasters)

    @staticmethod
    def holds(thing: Thing) -> bool:
        return True

    def pick(self, number: int, *, deleting: bool = False) -> Thing | None:
        """One of the objects there are."""
        there = [each for each in self.server.objects.values() if each.deleting or not deleting]
        return there[number % len(there)] if there else None

    @initialize(things=st.dictionaries(keys, tiers))
    def there_is_a_complete_store(self, things: dict[ObjectKey, str]) -> None:
        for key, tier in things.items():
            self.server.put(key, tier, "", False)
        self.view.catch_up()

    # The server

    @rule(key=keys, tier=tiers, node=nodes, held=st.booleans())
    def somebody_writes(self, key: ObjectKey, tier: str, node: str, held: bool) -> None:
        if self.kind_exists:
            self.server.put(key, tier, node, held)

    @rule(number=numbers)
    def somebody_deletes(self, number: int) -> None:
        if (thing := self.pick(number)) is not None:
            self.server.delete(thing.key)

    @rule(number=numbers)
    def somebody_lets_go(self, number: int) -> None:
        if (thing := self.pick(number, deleting=True)) is not None:
            self.server.let_go(thing.key)

    @rule()
    def something_else_is_written(self) -> None:
        self.server.revision += 1

    @rule(number=numbers)
    def the_server_is_restored_from_a_backup(self, number: int) -> None:
        if self.disasters and self.kind_exists:
            self.server.restore(max(1, self.server.revision - 1 - number))
            self.answers.clear()
            self.view.mode = "empty"
            self.view.forget(in_doubt=True)

    @rule()
    def the_kind_is_removed(self) -> None:
        if self.disasters and self.kind_exists:
            self.kind_exists = False
            for key in list(self.server.objects):
                self.server.let_go(key)
            self.view.mode = "gone"
            self.view.informer.gone()

    @rule()
    def the_kind_is_back(self) -> None:
        self.kind_exists = True

    # The program

    @rule(key=keys, tier=tiers, node=nodes, held=st.booleans(), at_once=st.booleans(), locked=st.booleans())
    def the_program_writes(self, key: ObjectKey, tier: str, node: str, held: bool, at_once: bool, locked: bool) -> None:
        if self.kind_exists:
            before = self.server.objects.get(key)
            after = self.server.put(key, tier, node, held)
            self.server.own.add(after.revision)
            self._answer(key, after, "", self._origin(before, after, locked), at_once=at_once)

    @rule(number=numbers, at_once=st.booleans(), locked=st.booleans())
    def the_program_writes_what_is_there_already(self, number: int, at_once: bool, locked: bool) -> None:
        """Nothing changes, and the answer is the object at the revision that it has, whichever writer made it."""
        if (thing := self.pick(number)) is not None:
            self._answer(thing.key, thing, "", self._origin(thing, thing, locked), at_once=at_once)

    def _origin(self, before: Thing | None, after: Thing, locked: bool) -> WriteOrigin | None:
        """As the client decides it. Each write gives an object another value, so that none is the same as another."""
        if before is None:
            return origin_of("POST", after.raw, None, revision=str(after.revision), is_created=True)
        metadata = {"resourceVersion": str(before.revision)} if locked else {}
        data = {"node": after.node, **({"value": str(after.value)} if after is not before else {})}
        sent = msgspec.json.encode({"metadata": metadata, "data": data})
        return origin_of("PATCH", sent, base_of(sent), revision=str(after.revision))

    @rule(number=numbers, at_once=st.booleans())
    def the_program_deletes(self, number: int, at_once: bool) -> None:
        if (thing := self.pick(number)) is not None:
            informer, lists, uid = self.view.informer, self.view.lists, thing.uid
            removal = informer.removal_begins(thing.key)

            def is_new() -> bool:
                informer.removal_ends(removal)
                self.listed_meanwhile |= self.view.lists != lists
                return removal.is_unseen(uid)

            self._answer(thing.key, self.server.delete(thing.key), thing.uid, None, is_new, at_once=at_once)

    @rule(number=numbers, at_once=st.booleans())
    def the_program_lets_go(self, number: int, at_once: bool) -> None:
        if (thing := self.pick(number, deleting=True)) is not None:
            self.server.let_go(thing.key)
            informer, revision = self.view.informer, thing.revision
            self._answer(thing.key, None, thing.uid, None, lambda: revision > informer.revision, at_once=at_once)

    @rule(number=numbers)
    def an_answer_arrives(self, number: int) -> None:
        if self.answers:
            self._answer(*self.answers.pop(number % len(self.answers)), at_once=True)

    def _answer(
        self,
        key: ObjectKey,
        thing: Thing | None,
        uid: str,
        origin: WriteOrigin | None,
        is_new: Callable[[], bool] = bool,
        *,
        at_once: bool,
    ) -> None:
        if at_once:
            self.view.answered(key, thing, uid, origin, is_new())
        else:
            self.answers.append((key, thing, uid, origin, is_new))

    # The watch

    @rule()
    def a_list_begins(self) -> None:
        if self.kind_exists and self.view.mode != "listing":
            self.view.begin_list()

    @rule()
    def an_object_is_listed(self) -> None:
        if self.view.mode == "listing" and self.view.to_list:
            self.view.list_one()

    @rule()
    def a_list_is_complete(self) -> None:
        if self.view.mode == "listing":
            self.view.end_list()

    @rule()
    def a_list_is_interrupted(self) -> None:
        if self.view.mode == "listing":
            self.view.mode = "empty"

    @rule()
    def the_watch_brings_a_change(self) -> None:
        # While a list is streamed, changes follow on the objects that existed at its beginning.
        while self.view.mode == "listing" and self.view.to_list:
            self.view.list_one()
        if self.view.mode in ("listing", "watching"):
            self.view.step()

    @rule()
    def a_bookmark_arrives(self) -> None:
        if self.view.mode == "watching":
            self.view.informer.progress(self.view.position)

    @rule(number=numbers)
    def the_watch_is_cut_and_repeats_itself(self, number: int) -> None:
        if self.view.mode == "watching":
            passed = [each for each in self.server.changes if each.revision <= self.view.position]
            for change in passed[-1 - number :]:
                self.view.bring(change)

    @rule()
    def another_subscribes(self) -> None:
        if len(self.view.listeners) < 3:
            self.view.subscribe(self.disasters)

    @rule()
    def everything_arrives(self) -> None:
        while self.answers:
            self._answer(*self.answers.pop(), at_once=True)
        if self.kind_exists:
            self.view.catch_up()
        if self.kind_exists and not self.view.in_doubt:
            shown = {entry.key: entry.body for entry in self.view.informer.select()}
            assert shown == self.view.state(self.server.revision)
            if self.listed_meanwhile:
                # Whether that list was before or after an object that is not in it cannot be known.
                self.view.begin_list()
                self.view.end_list()
            assert len(self.view.informer._overlay) == 0

    @invariant()
    def reads_and_events_are_right(self) -> None:
        self.view.check_store()
        self.view.check_reads(own_writes=False)
        self.view.check_reads(own_writes=True)
        self.view.check_own_writes()

    def teardown(self) -> None:
        self.view.informer.gone()
        assert all(listener.known == {} and not listener.complaints for listener in self.view.listeners)
        assert self.view.informer.statistics.objects == self.view.informer.statistics.bytes == 0


class DisasterMachine(InformerMachine):
    disasters = True


class NamespaceMachine(InformerMachine):
    scope = msgspec.structs.replace(InformerMachine.scope, namespace="a")

    @staticmethod
    def holds(thing: Thing) -> bool:
        return thing.key.namespace == "a"


class SelectorMachine(InformerMachine):
    scope = msgspec.structs.replace(InformerMachine.scope, labels="tier=front")

    @staticmethod
    def holds(thing: Thing) -> bool:
        return thing.tier == "front"


class TransformMachine(InformerMachine):
    scope = msgspec.structs.replace(InformerMachine.scope, transform=_without_value)


_MACHINES = (InformerMachine, DisasterMachine, NamespaceMachine, SelectorMachine, TransformMachine)
_STEPS: dict[str, tuple[str, ...]] = {
    "somebody_writes": ("key", "tier", "node", "held"),
    "somebody_deletes": ("number",),
    "somebody_lets_go": ("number",),
    "something_else_is_written": (),
    "the_program_writes": ("key", "tier", "node", "held", "at_once", "locked"),
    "the_program_writes_what_is_there_already": ("number", "at_once", "locked"),
    "the_program_deletes": ("number", "at_once"),
    "the_program_lets_go": ("number", "at_once"),
    "an_answer_arrives": ("number",),
    "a_list_begins": (),
    "an_object_is_listed": (),
    "a_list_is_complete": (),
    "a_list_is_interrupted": (),
    "the_watch_brings_a_change": (),
    "a_bookmark_arrives": (),
    "the_watch_is_cut_and_repeats_itself": ("number",),
    "another_subscribes": (),
    "everything_arrives": (),
    "the_server_is_restored_from_a_backup": ("number",),
    "the_kind_is_removed": (),
    "the_kind_is_back": (),
}
_USUAL = tuple(_STEPS)[:18]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("machine", _MACHINES)
def test_long_walks_find_nothing_wrong(machine: type[InformerMachine], seed: int) -> None:
    """Hypothesis tries short stories first, and shortens those that fail. What needs a long one is found here."""
    chance = random.Random(seed)  # the same walk every time
    choices: dict[str, Sequence[object]] = {
        "key": _KEYS,
        "tier": _TIERS,
        "node": _NODES,
        "held": (False, False, True),
        "at_once": (False, True),
        "locked": (False, True),
        "number": range(4),
    }
    walk = machine()
    if seed % 2:
        walk.there_is_a_complete_store({})
    for _ in range(200):
        # What follows a disaster is worth more than the next one.
        name = chance.choice(_USUAL) if chance.random() < 0.7 else chance.choice(tuple(_STEPS))
        getattr(walk, name)(**{each: chance.choice(choices[each]) for each in _STEPS[name]})
        walk.reads_and_events_are_right()
    walk.the_kind_is_back()
    walk.everything_arrives()
    walk.teardown()


_short = settings(max_examples=40, stateful_step_count=30, deadline=None)

TestWholeCopy = InformerMachine.TestCase
TestWholeCopy.settings = _short
TestCopyThroughDisasters = DisasterMachine.TestCase
TestCopyThroughDisasters.settings = _short
TestCopyOfANamespace = NamespaceMachine.TestCase
TestCopyOfANamespace.settings = _short
TestCopyBySelector = SelectorMachine.TestCase
TestCopyBySelector.settings = _short
TestTransformedCopy = TransformMachine.TestCase
TestTransformedCopy.settings = _short
