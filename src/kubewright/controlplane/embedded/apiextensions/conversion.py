"""Versions of a custom kind that a webhook converts between.

Objects are stored in one version. What is needed in another one is requested of the webhook while the request for it is
suspended. A read of one object asks every time; what lists and watches need is remembered by revision, as the real
server's watch caches do.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.webhook_client import (
    CallFailed,
    answered_object,
    call_webhook,
    check_kind,
)
from kubewright.controlplane.embedded.apiextensions.conversion_review import (
    GROUP,
    KIND,
    InvalidConversion,
    UndecodableObject,
    conversion_review,
    converted_object,
    converted_objects,
    review_version,
)
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import NotConverted, StatusError
from kubewright.controlplane.embedded.registry.converted import SeenStore
from kubewright.controlplane.embedded.rest.call import ChangeSubscription, ObjectStore
from kubewright.controlplane.embedded.rest.suspension import Outcome, Settled, Step, Suspended
from kubewright.controlplane.embedded.storage.store import Range
from kubewright.controlplane.embedded.storage.stored_object import StoreChange, StoredObject

_SECONDS = 30
_MAX_REVIEW_SIZE = 3 * 1024 * 1024
"""Bytes of a review of several objects: webhooks limit what they read. The real server asks for each on its own."""
_RETRY = 0.2
"""Seconds between the attempts to convert what a watch has to send."""
_MAX_REMEMBERED = 16 << 20
"""Bytes of the JSON of what is remembered of a version."""
_CHANGEABLE = ("labels", "annotations")


class SchemaRules(Protocol):
    """What the schema of one version does to objects."""

    def prune(self, obj: JSONObject) -> list[str]:
        """Drop what the schema does not know."""

    def default(self, obj: JSONObject) -> None:
        """Prune and fill in defaults."""


class _Source(NamedTuple):
    """An object that is to be converted, without its kind, and its version."""

    value: JSONObject
    version: str


class WebhookConverter:
    """The conversion between the versions of one definition."""

    def __init__(self, definition: JSONObject, rules: Mapping[str, SchemaRules], store: ObjectStore) -> None:
        """`store` is where the Service of the webhook is looked up."""
        conversion = mapping(definition, "spec", "conversion")
        self._client = mapping(conversion, "webhook", "clientConfig")
        self._review_version = review_version(conversion)
        self._group = text(definition, "spec", "group")
        self._kind = text(definition, "status", "acceptedNames", "kind")
        self.rules = rules
        self._store = store

    async def convert(self, sources: Sequence[_Source], version: str) -> list[JSONObject]:
        """The objects in a version, in as few calls of the webhook as their size allows. Raises NotConverted."""
        wanted = self._gvk(version)
        objects = [self._sent(source) for source in sources]
        uid = str(uuid.uuid4())
        body = conversion_review(objects, wanted.api_version, uid, self._review_version)
        if len(body) > _MAX_REVIEW_SIZE and len(sources) > 1:
            middle = len(sources) // 2
            return [*await self.convert(sources[:middle], version), *await self.convert(sources[middle:], version)]
        first = self._gvk(sources[0].version)
        try:
            answer = answered_object(await call_webhook(self._client, body, _SECONDS, self._store))
            check_kind(answer, GROUP, KIND, self._review_version)
            found = converted_objects(answer, uid, self._review_version, len(objects))
            pairs = zip(found, sources, strict=True)
            return [self._pruned(converted_object(each, source.value, wanted), version) for each, source in pairs]
        except CallFailed as error:
            why = f"failed: {error}"
        except InvalidConversion as error:
            why = str(error)
        except UndecodableObject as error:
            raise NotConverted(500, "", str(error)) from None
        raise NotConverted(500, "", f"conversion webhook for {first.api_version}, Kind={first.kind} {why}")

    def converted(self, value: JSONObject, source: str, target: str, settled: Settled) -> JSONObject:
        """An object of one version in another one. Raises Suspended, or the StatusError of a failed conversion."""
        if source == target:
            return value
        step = _step_of(value, source, target)
        outcome = settled.get(step)
        if outcome is None:

            async def settle() -> Settled:
                return {step: (await self.outcomes([_Source(value, source)], target))[0]}

            raise Suspended(settle)
        if outcome.error is not None or outcome.obj is None:
            raise outcome.error or StatusError(500, "", "")
        found = copied_object(outcome.obj)
        # The metadata may differ from that of the object that was sent, in what conversions do not concern.
        metadata = {name: each for name, each in mapping(value, "metadata").items() if name not in _CHANGEABLE}
        metadata |= {name: each for name, each in mapping(found, "metadata").items() if name in _CHANGEABLE}
        found["metadata"] = metadata
        return found

    async def outcomes(self, sources: Sequence[_Source], version: str) -> list[Outcome]:
        """As `convert`; a failure is the outcome of each."""
        try:
            return [Outcome(value, None) for value in await self.convert(sources, version)]
        except StatusError as error:
            return [Outcome(None, error)] * len(sources)

    def _gvk(self, version: str) -> GroupVersionKind:
        return GroupVersionKind(self._group, version, self._kind)

    def _sent(self, source: _Source) -> JSONObject:
        """As it is stored: without a revision."""
        metadata = {name: each for name, each in mapping(source.value, "metadata").items() if name != "resourceVersion"}
        gvk = self._gvk(source.version)
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, **source.value, "metadata": metadata}

    def _pruned(self, value: JSONObject, version: str) -> JSONObject:
        self.rules[version].prune(value)
        return value


def _step_of(value: JSONObject, source: str, target: str) -> Step:
    """Known by its content: a request that is handled again makes the same object, with another uid and time."""
    metadata = mapping(value, "metadata")
    content = {**value, "metadata": {name: metadata.get(name) for name in _CHANGEABLE}}
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
    return "conversion", source, target, digest


class ConvertedVersion:
    """What one version shows of the stored objects, and what is remembered of that."""

    def __init__(
        self,
        conversion: WebhookConverter,
        prefix: str,
        version: str,
        storage: str,
        unreadable: Mapping[str, str],
    ) -> None:
        self.conversion = conversion
        self.prefix = prefix
        self.version = version
        self.storage = storage
        self._unreadable = unreadable
        self._remembered: dict[tuple[str, int], StoredObject] = {}
        self._size = 0
        # Watchers of the same want the same converted: the first asks, the others find it remembered.
        self._converting = asyncio.Lock()

    def store(self, store: ObjectStore, settled: Settled, *, is_fresh: bool) -> ConvertingStore:
        """The store as this version sees it; with `is_fresh`, nothing is taken from what is remembered."""
        return ConvertingStore(store, self, settled, is_fresh=is_fresh)

    def shown(self, entries: Iterable[StoredObject], settled: Settled, *, is_fresh: bool) -> list[StoredObject]:
        """The entries in this version. Raises StatusError, or Suspended with one call for all that are missing."""
        found: list[StoredObject] = []
        missing: list[StoredObject] = []
        for entry in entries:
            seen = self._at_hand(entry)
            outcome = settled.get(self._step(entry)) if seen is None else None
            if seen is None and outcome is None and not is_fresh:
                seen = self._remembered.get((entry.key, entry.revision))
            if outcome is not None:
                if outcome.error is not None:
                    raise outcome.error
                seen = self._entry(entry, outcome.obj or {})
            if seen is None:
                missing.append(entry)
            else:
                found.append(seen)
        if missing:

            async def settle() -> Settled:
                outcomes = await self.conversion.outcomes([self._source(entry) for entry in missing], self.version)
                pairs = list(zip(missing, outcomes, strict=True))
                if not is_fresh:
                    for entry, outcome in pairs:
                        if outcome.obj is not None:
                            self.remember(self._entry(entry, outcome.obj))
                return {self._step(entry): outcome for entry, outcome in pairs}

            raise Suspended(settle)
        return found

    async def awaited(self, entries: Sequence[StoredObject]) -> list[StoredObject]:
        """The entries in this version, once they are converted. Raises StatusError."""
        settled: Settled = {}
        async with self._converting:
            try:
                return self.shown(entries, settled, is_fresh=False)
            except Suspended as stop:
                settled.update(await stop.outcomes())
            return self.shown(entries, settled, is_fresh=False)

    def remember(self, entry: StoredObject) -> None:
        """Keep what this version shows of an object at a revision."""
        if (entry.key, entry.revision) in self._remembered:
            return
        self._remembered[entry.key, entry.revision] = entry
        self._size += len(entry.raw)
        while self._size > _MAX_REMEMBERED and len(self._remembered) > 1:
            self._size -= len(self._remembered.pop(next(iter(self._remembered))).raw)

    def _at_hand(self, entry: StoredObject) -> StoredObject | None:
        """What needs no webhook: objects of other kinds, and those that are stored in this version."""
        if not entry.key.startswith(self.prefix):
            return entry
        if why := self._unreadable.get(entry.form):
            raise StatusError(500, "", why)
        if entry.form != self.version:
            return None
        value = self._source(entry).value
        same = value == entry.value and self.version == self.storage
        return entry if same else self._entry(entry, value)

    def _source(self, entry: StoredObject) -> _Source:
        value = copied_object(entry.value)
        self.conversion.rules[entry.form].default(value)
        return _Source(value, entry.form)

    def _entry(self, entry: StoredObject, value: JSONObject) -> StoredObject:
        inside(value, "metadata")["resourceVersion"] = str(entry.revision)
        is_changed = entry.form != self.storage or (entry.form == self.version and value != entry.value)
        return StoredObject(entry.key, value, entry.revision, entry.created, adapted=is_changed, form=entry.form)

    def _step(self, entry: StoredObject) -> Step:
        return "stored", self.version, entry.key, str(entry.revision)


class ConvertingStore(SeenStore):
    """An `ObjectStore` of one version, for one request."""

    def __init__(self, store: ObjectStore, version: ConvertedVersion, settled: Settled, *, is_fresh: bool) -> None:
        super().__init__(store, lambda entry: version.shown([entry], settled, is_fresh=is_fresh)[0])
        self._version = version
        self._settled = settled
        self._is_fresh = is_fresh

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """See `Store`."""
        found = self._store.range(prefix, start=start, limit=limit, revision=revision)
        entries = self._version.shown(found.entries, self._settled, is_fresh=self._is_fresh)
        return Range(entries, found.remaining, found.revision)

    def prepare(self, value: JSONObject) -> None:
        """See `Store`."""
        self._stored(value)

    def create(self, key: str, value: JSONObject) -> StoredObject:
        """See `Store`."""
        if not key.startswith(self._version.prefix):
            return self._store.create(key, value)
        stored, shown = self._stored(value)
        return self._written(self._store.create(key, stored), shown)

    def update(self, key: str, value: JSONObject, *, expected: int) -> StoredObject:
        """See `Store`. In the version that is stored already, changed bookkeeping in the metadata needs no webhook."""
        if not key.startswith(self._version.prefix):
            return self._store.update(key, value, expected=expected)
        current = self.get(key) if self._is_fresh else None
        if current is not None and current.form == self._version.storage and _same_content(value, current.value):
            entry = self._store.update(key, self._marked(key, value), expected=expected)
            return self._written(entry, value)
        stored, shown = self._stored(value)
        return self._written(self._store.update(key, stored, expected=expected), shown)

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> StoredObject:
        """See `Store`. What is stored in a former version is converted for it, as the real server compares objects in
        the form that it would store them in.
        """
        current = self.get(key) if key.startswith(self._version.prefix) else None
        if current is not None and current.form != self._version.storage:
            self._stored(current.value)
        last = final if final is None else self._marked(key, final)
        return self._store.delete(key, expected=expected, final=last)

    def watch(self, prefix: str, after: int) -> ConvertingSubscription:
        """See `Store`."""
        return ConvertingSubscription(self._store.watch(prefix, after), self._version)

    def _stored(self, value: JSONObject) -> tuple[JSONObject, JSONObject | StatusError]:
        """What is stored of a value, and what is shown of that then, or why that cannot be shown."""
        version, conversion = self._version, self._version.conversion
        if version.version == version.storage:
            return value, value
        stored = conversion.converted(value, version.version, version.storage, self._settled)
        read = copied_object(stored)
        conversion.rules[version.storage].default(read)
        try:
            return stored, conversion.converted(read, version.storage, version.version, self._settled)
        except StatusError as error:
            return stored, error

    def _written(self, entry: StoredObject, shown: JSONObject | StatusError) -> StoredObject:
        if isinstance(shown, StatusError):
            raise shown
        if shown is entry.value:
            return self._seen(entry)
        inside(shown, "metadata")["resourceVersion"] = str(entry.revision)
        seen = StoredObject(entry.key, shown, entry.revision, entry.created, form=entry.form)
        self._version.remember(seen)
        return seen

    def _marked(self, key: str, value: JSONObject) -> JSONObject:
        """What is stored, with the metadata of `value` as far as conversions leave it alone."""
        entry = self._store.get(key)
        if entry is None:
            return value
        metadata = {name: each for name, each in mapping(value, "metadata").items() if name not in _CHANGEABLE}
        before = mapping(entry.value, "metadata")
        metadata |= {name: before[name] for name in _CHANGEABLE if name in before}
        return {**copied_object(entry.value), "metadata": metadata}


def _same_content(one: JSONObject, other: JSONObject) -> bool:
    """Whether two objects differ at most in metadata that conversions leave alone."""
    first, second = mapping(one, "metadata"), mapping(other, "metadata")
    return {**one, "metadata": None} == {**other, "metadata": None} and all(
        first.get(name) == second.get(name) for name in _CHANGEABLE
    )


class ConvertingSubscription:
    """A `Subscription` whose changes are converted. While that fails, they are withheld, and it is tried again."""

    def __init__(self, subscription: ChangeSubscription, version: ConvertedVersion) -> None:
        self._subscription = subscription
        self._version = version
        self._interrupted = asyncio.Event()
        self._is_given_up = False

    async def changes(self) -> list[StoreChange]:
        """See `Subscription`."""
        changes = await self._subscription.changes()
        if not changes:
            return changes
        entries = [entry for change in changes for entry in (change.entry, change.previous) if entry is not None]
        while True:
            self._interrupted.clear()
            try:
                shown = iter(await self._version.awaited(entries))
                break
            except StatusError:
                if self._subscription.closed:
                    return []
            try:
                async with asyncio.timeout(_RETRY):
                    await self._interrupted.wait()
            except TimeoutError:
                continue
            # Its time is over, or a bookmark is due, which must not be ahead of what is withheld.
            self._is_given_up = True
            return []
        return [
            StoreChange(change.kind, change.key, next(shown), None if change.previous is None else next(shown))
            for change in changes
        ]

    @property
    def closed(self) -> bool:
        """See `Subscription`."""
        return self._is_given_up or self._subscription.closed

    def interrupt(self) -> None:
        """See `Subscription`."""
        self._interrupted.set()
        self._subscription.interrupt()

    def close(self) -> None:
        """See `Subscription`."""
        self._subscription.close()
