"""What a custom resource definition serves: one resource type per version, with the rules of its schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions.conversion import ConvertedVersion, WebhookConverter
from kubewright.controlplane.embedded.apiextensions.names import condition_holds
from kubewright.controlplane.embedded.apiextensions.scale import ScalePaths
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value, shown
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure
from kubewright.controlplane.embedded.builtins.metadata import finalizer_warnings, validate_metadata_change
from kubewright.controlplane.embedded.endpoints.discovery import version_priority
from kubewright.controlplane.embedded.registry.converted import ConvertedStore, SeenStore, VersionView
from kubewright.controlplane.embedded.registry.resources import ResourceType, Strategy
from kubewright.controlplane.embedded.rest.call import ObjectStore
from kubewright.controlplane.embedded.rest.suspension import Settled
from kubewright.controlplane.embedded.schema.defaults import Defaulter
from kubewright.controlplane.embedded.schema.embedded import EmbeddedResources
from kubewright.controlplane.embedded.schema.findings import NOWHERE
from kubewright.controlplane.embedded.schema.lists import ListTypes
from kubewright.controlplane.embedded.schema.prune import Pruner
from kubewright.controlplane.embedded.schema.rules import compiled
from kubewright.controlplane.embedded.schema.validation import Validator

# Errors after which rules are not evaluated, because their types might not hold.
_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_IDENTITY = frozenset(("apiVersion", "kind", "metadata"))


@dataclass(frozen=True, slots=True)
class Past:
    """What a definition was before, of which objects may still be stored."""

    since: int = 0
    """The revision from which on objects have been written by its schemas and in its storage version of today."""
    dropped: frozenset[str] = frozenset()
    """Versions that objects were stored in, and which it has no longer."""


_NO_PAST = Past()


def custom_resources(definition: JSONObject, store: ObjectStore, past: Past = _NO_PAST) -> list[ResourceType]:
    """One resource type per served version; none before the names are accepted. `store` has Services of webhooks."""
    if not condition_holds(definition, "NamesAccepted") and not condition_holds(definition, "Established"):
        return []
    versions = [mapping(version) for version in items(definition, "spec", "versions")]
    stored = next((version for version in versions if version.get("storage") is True), {})
    rules = {
        text(version, "name"): CustomVersion(
            mapping(version, "schema", "openAPIV3Schema"), mapping(version, "subresources")
        )
        for version in versions
        if version.get("served") is True or version is stored or _is_converted(definition)
    }
    conversion = WebhookConverter(definition, rules, store) if _is_converted(definition) else None
    return [
        _resource(definition, version, stored, rules, past, conversion)
        for version in versions
        if version.get("served") is True
    ]


def _is_converted(definition: JSONObject) -> bool:
    return text(definition, "spec", "conversion", "strategy") == "Webhook"


def _resource(
    definition: JSONObject,
    version: JSONObject,
    stored: JSONObject,
    rules: Mapping[str, CustomVersion],
    past: Past,
    conversion: WebhookConverter | None,
) -> ResourceType:
    names = mapping(definition, "status", "acceptedNames")
    group, name, kind = text(definition, "spec", "group"), text(version, "name"), text(names, "kind")
    schema = mapping(version, "schema", "openAPIV3Schema")
    subresources = mapping(version, "subresources")
    behaviour, storage = rules[name], rules[text(stored, "name")]
    selectable = {
        path.removeprefix("."): path.removeprefix(".").split(".")
        for path in (text(field, "jsonPath") for field in items(version, "selectableFields"))
    }

    def selectable_fields(obj: JSONObject) -> Mapping[str, str]:
        return {label: _printed(at(obj, *steps)) for label, steps in selectable.items()}

    return ResourceType(
        gvk=GroupVersionKind(group, name, kind),
        plural=text(names, "plural"),
        singular=text(names, "singular"),
        namespaced=text(definition, "spec", "scope") == "Namespaced",
        list_kind=text(names, "listKind"),
        short_names=tuple(str(short) for short in items(names, "shortNames")),
        categories=tuple(str(category) for category in items(names, "categories")),
        subresources=frozenset(sub for sub in ("status", "scale") if subresources.get(sub) is not None),
        structure=SchemaStructure(schema),
        strategy=Strategy(
            prune=behaviour.prune,
            default=behaviour.default,
            prepare_create=behaviour.prepare_create,
            prepare_update=behaviour.prepare_update,
            prepare_status=behaviour.prepare_status,
            validate=behaviour.validate,
            validate_update=behaviour.validate_update,
            validate_status=behaviour.validate_status,
            has_generation=True,
            changes_generation=behaviour.changes_generation,
            selectable_fields=selectable_fields,
            selectable=frozenset(selectable),
            unconditional_update=False,
            warnings=finalizer_warnings,
        ),
        custom=True,
        storage=GroupVersionKind(group, text(stored, "name"), kind) if version is not stored else None,
        schema=schema,
        definition=definition,
        view=(
            _view(definition, behaviour, storage, text(stored, "name"), past)
            if conversion is None
            else _converted_view(definition, name, text(stored, "name"), past, conversion)
        ),
        convert=None if conversion is None else conversion.converted,
        is_dropping=bool(past.dropped),
        deprecation=_deprecation(definition, version, kind),
    )


def _converted_view(
    definition: JSONObject, name: str, storage: str, past: Past, conversion: WebhookConverter
) -> Callable[[ObjectStore, Settled, bool], ObjectStore]:
    """What one version shows, where a webhook converts."""
    unreadable = {dropped: unreadable_version(definition, dropped) for dropped in past.dropped}
    version = ConvertedVersion(conversion, _prefix(definition), name, storage, unreadable)
    return lambda store, settled, is_fresh: version.store(store, settled, is_fresh=is_fresh)


def _view(
    definition: JSONObject, version: CustomVersion, storage: CustomVersion, form: str, past: Past
) -> Callable[[ObjectStore, Settled, bool], ObjectStore] | None:
    """What one version shows: what is stored, by the schema of the stored version and then by its own."""
    schemas = [mapping(other, "schema") for other in items(definition, "spec", "versions")]
    unreadable = {name: unreadable_version(definition, name) for name in past.dropped}
    prefix = _prefix(definition)
    if all(schema == schemas[0] for schema in schemas):
        if not past.since and not storage.defaults_status:
            return None
        completes = storage.defaults_status
        seen = VersionView(storage.default, past.since, form, unreadable, prefix=prefix, defaults_status=completes)
        return lambda store, settled, is_fresh: SeenStore(store, seen)

    def show(obj: JSONObject) -> None:
        storage.default(obj)
        if version is not storage:
            version.prune(obj)

    def to_storage(obj: JSONObject) -> JSONObject:
        storage.prune(obj)
        return obj

    # Objects of one version are written through others, which know nothing of its defaults.
    converted = VersionView(show, math.inf, form, unreadable, prefix=prefix)
    return lambda store, settled, is_fresh: SeenStore(
        ConvertedStore(store, to_storage, lambda obj: obj, prefix), converted
    )


def _prefix(definition: JSONObject) -> str:
    """Where the objects of a definition are in the store."""
    return f"/{text(definition, 'spec', 'group')}/{text(definition, 'spec', 'names', 'plural')}/"


def unreadable_version(definition: JSONObject, version: str) -> str:
    """Why an object that is stored in a version which is there no longer cannot be read."""
    return f"request to convert CR from an invalid group/version: {text(definition, 'spec', 'group')}/{version}"


def _deprecation(definition: JSONObject, version: JSONObject, kind: str) -> str:
    if version.get("deprecated") is not True:
        return ""
    if warning := text(version, "deprecationWarning"):
        return warning
    group, name = text(definition, "spec", "group"), text(version, "name")
    better = sorted(
        (
            text(other, "name")
            for other in items(definition, "spec", "versions")
            if mapping(other).get("served") is True and mapping(other).get("deprecated") is not True
        ),
        key=version_priority,
    )
    deprecation_text = f"{group}/{name} {kind} is deprecated"
    if better and version_priority(better[0]) < version_priority(name):
        deprecation_text += f"; use {group}/{better[0]} {kind}"
    return deprecation_text


class CustomVersion:
    """How objects of one version are filled in, checked and changed. The schema is read once."""

    def __init__(self, schema: JSONObject, subresources: JSONObject) -> None:
        self._pruner = Pruner(schema)
        self._defaulter = Defaulter(schema)
        self._validator = Validator(schema)
        self._lists = ListTypes(schema)
        self._embedded = EmbeddedResources(schema)
        self._rules = compiled(schema)
        self._scale = ScalePaths.of(subresources)
        self._has_status = subresources.get("status") is not None
        status = mapping(schema, "properties").get("status")
        self.defaults_status = self._has_status and isinstance(status, dict) and status.get("default") is not None
        """Whether an object that was created without a status is read with one."""
        self._status_validator = Validator(status) if self._has_status and isinstance(status, dict) else None

    def prune(self, obj: JSONObject) -> list[str]:
        """Drop what the schema does not know. Returns the paths of what was dropped."""
        return self._pruner.prune(obj)

    def default(self, obj: JSONObject) -> None:
        """Prune and fill in defaults: for what comes in and for what is read from storage."""
        self._pruner.prune(obj)
        self._defaulter.apply(obj)

    def prepare_create(self, new: JSONObject) -> None:
        """A new object has no status where that is a subresource."""
        if self._has_status:
            new.pop("status", None)

    def prepare_update(self, new: JSONObject, old: JSONObject) -> None:
        """The status stays as it is where that is a subresource."""
        if self._has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]

    def prepare_status(self, new: JSONObject, old: JSONObject) -> None:
        """Everything but the status stays as it is; who manages the fields is the handlers' work."""
        status, had_status = new.get("status"), "status" in new
        managed = mapping(new, "metadata").get("managedFields")
        new.clear()
        new.update(copied_object({name: value for name, value in old.items() if name != "status"}))
        metadata = mapping(new, "metadata")
        metadata.pop("managedFields", None)
        if managed is not None:
            metadata["managedFields"] = managed
        if had_status:
            new["status"] = status

    def changes_generation(self, new: JSONObject, old: JSONObject) -> bool:
        """Whether anything but metadata, and a status that is a subresource, differs."""
        ignored = _IDENTITY | {"status"} if self._has_status else _IDENTITY
        return any(new.get(name) != old.get(name) for name in (new.keys() | old.keys()) - ignored)

    def validate(self, new: JSONObject) -> list[FieldError]:
        """What is wrong with a new object."""
        errors = self._validator.validate(new)
        if self._scale is not None:
            errors += [*self._scale.check_spec(new), *self._scale.check_status(new)]
        errors += self._embedded.validate(new)
        errors += self._lists.validate(new)
        return self._with_rules(errors, new, None)

    def validate_update(self, new: JSONObject, old: JSONObject) -> list[FieldError]:
        """What is wrong with a changed object, except for what was wrong before and has not changed."""
        errors = [*validate_metadata_change(new, old), *self._validator.validate_update(new, old)]
        if self._scale is not None:
            errors += [*self._scale.check_spec(new), *self._scale.check_status(new)]
        errors += self._embedded.validate(new)
        errors += self._new_repetitions(new, old)
        return self._with_rules(errors, new, old)

    def validate_status(self, new: JSONObject, old: JSONObject) -> list[FieldError]:
        """What is wrong with a changed status."""
        errors = validate_metadata_change(new, old)
        if "status" in new and self._status_validator is not None:
            errors += self._status_validator.validate_update(new["status"], old.get("status"), "status")
        if self._scale is not None:
            errors += self._scale.check_status(new)
        errors += self._new_repetitions(new, old)
        return self._with_rules(errors, new, old)

    def _new_repetitions(self, new: JSONObject, old: JSONObject) -> list[FieldError]:
        errors = self._lists.validate(new)
        return [] if errors and self._lists.validate(old) else errors

    def _with_rules(self, errors: list[FieldError], new: JSONObject, old: JSONObject | None) -> list[FieldError]:
        if self._rules is None:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, invalid_value(NOWHERE, None, _UNCHECKED)]
        return errors + self._rules.validate(new, old)


def _printed(value: JSONValue) -> str:
    return "" if value is None else value if isinstance(value, str) else shown(value)
