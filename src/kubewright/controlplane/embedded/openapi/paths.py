"""The operations of each path, in OpenAPI v3.

Only what is served: collections, objects and those subresources that are read and written like objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.endpoints.discovery import AnnouncedSubresource, announced_subresources
from kubewright.controlplane.embedded.openapi.types import META, reference
from kubewright.controlplane.embedded.registry.resources import ResourceType

_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_DELETE: Final = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
_LIST: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE_COLLECTION: Final = tuple(sorted({*_DELETE, *_LIST} - {"allowWatchBookmarks", "watch"}))
_TYPES: Final = {
    **dict.fromkeys(("gracePeriodSeconds", "limit", "timeoutSeconds"), "integer"),
    **dict.fromkeys(
        (
            "allowWatchBookmarks",
            "force",
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            "orphanDependents",
            "sendInitialEvents",
            "watch",
        ),
        "boolean",
    ),
}
_STATUS: Final = f"{META}.Status"
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_ANSWERS: Final = {"200": "OK", "201": "Created", "202": "Accepted"}
# Streams and proxied requests are not described.
_UNDESCRIBED: Final = frozenset(("attach", "exec", "log", "portforward", "proxy"))


@dataclass(frozen=True, slots=True)
class Described:
    """A resource, and under which names its schema and that of its list are in the document."""

    resource: ResourceType
    schema: str
    list_schema: str


def paths_of(described: Described, names: dict[GroupVersionKind, str]) -> dict[str, JSONValue]:
    """The paths of a resource. `names` has the schemas of other kinds that subresources are answered as."""
    return _Paths(described, names).all()


class _Paths:
    def __init__(self, described: Described, names: dict[GroupVersionKind, str]) -> None:
        self._resource = resource = described.resource
        self._schema, self._list_schema, self._names = described.schema, described.list_schema, names
        group, version, kind = resource.gvk
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        self._collection = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        self._everywhere = f"{root}/{resource.plural}"
        self._collection += f"/{resource.plural}"
        self._tag = f"{_camel(group, custom=resource.custom)}_{version}"
        capital = _capital(_camel(group, custom=resource.custom))
        self._before = f"{capital}{_capital(version)}"
        self._after = f"{'Namespaced' if resource.namespaced else ''}{kind}"

    def all(self) -> dict[str, JSONValue]:
        found: dict[str, JSONValue] = {}
        verbs = self._resource.verbs
        if self._resource.namespaced and "list" in verbs:
            everywhere = self._operation(
                "list", f"list{self._before}{self._resource.gvk.kind}ForAllNamespaces", self._list_schema, ["200"]
            )
            found[self._everywhere] = {"get": everywhere, "parameters": _parameters(("pretty", *_LIST))}
        if collection := self._of_collection():
            found[self._collection] = {**collection, "parameters": self._path_parameters()}
        if single := self._of_object():
            found[f"{self._collection}/{{name}}"] = {**single, "parameters": self._path_parameters("name")}
        for subresource in announced_subresources(self._resource):
            if subresource.name not in _UNDESCRIBED:
                found[f"{self._collection}/{{name}}/{subresource.name}"] = {
                    **self._of_subresource(subresource),
                    "parameters": self._path_parameters("name"),
                }
        return found

    def _of_collection(self) -> JSONObject:
        verbs, operations = self._resource.verbs, JSONObject()
        before, after = self._before, self._after
        if "list" in verbs:
            operations["get"] = self._operation("list", f"list{before}{after}", self._list_schema, ["200"], query=_LIST)
        if "create" in verbs:
            operations["post"] = self._writing("post", f"create{before}{after}", self._schema, ["200", "201", "202"])
        if "deletecollection" in verbs:
            operations["delete"] = self._deleting(
                "deletecollection", f"delete{before}Collection{after}", _STATUS, ["200"], _DELETE_COLLECTION
            )
        return operations

    def _of_object(self) -> JSONObject:
        verbs, operations = self._resource.verbs, self._part("", self._schema, self._resource.verbs)
        if "delete" in verbs:
            answer = self._schema if self._resource.strategy.returns_deleted_object else _STATUS
            operations["delete"] = self._deleting(
                "delete", f"delete{self._before}{self._after}", answer, ["200", "202"], _DELETE
            )
        return operations

    def _of_subresource(self, subresource: AnnouncedSubresource) -> JSONObject:
        group, version, kind = self._resource.gvk
        if subresource.kind:
            group, version, kind = subresource.group or group, subresource.version or version, subresource.kind
        gvk = GroupVersionKind(group, version, kind)
        schema = self._schema if gvk == self._resource.gvk else self._names[gvk]
        suffix = _capital(subresource.name)
        operations = self._part(suffix, schema, subresource.verbs, gvk)
        if "create" in subresource.verbs:
            operations["post"] = self._writing(
                "post", f"create{self._before}{self._after}{suffix}", schema, ["200", "201", "202"], gvk
            )
        return operations

    def _part(self, suffix: str, schema: str, verbs: Iterable[str], gvk: GroupVersionKind | None = None) -> JSONObject:
        """Reading and writing of one object, or of one part of it."""
        operations: JSONObject = {}
        name = f"{self._before}{self._after}{suffix}"
        if "get" in verbs:
            operations["get"] = self._operation("get", f"read{name}", schema, ["200"], gvk=gvk)
        if "update" in verbs:
            operations["put"] = self._writing("put", f"replace{name}", schema, ["200", "201"], gvk)
        if "patch" in verbs:
            types = _PATCHES if self._resource.custom else (*_PATCHES, _STRATEGIC)
            patch = reference(f"{META}.Patch")
            answers = ["200"] if self._resource.custom else ["200", "201"]
            operations["patch"] = self._operation(
                "patch",
                f"patch{name}",
                schema,
                answers,
                query=(*_WRITE, "force"),
                body={"content": {type_: {"schema": patch} for type_ in types}, "required": True},
                gvk=gvk,
            )
        return operations

    def _writing(
        self, action: str, identifier: str, schema: str, answers: list[str], gvk: GroupVersionKind | None = None
    ) -> JSONObject:
        body: JSONObject = {"content": {"*/*": {"schema": reference(schema)}}, "required": True}
        return self._operation(action, identifier, schema, answers, query=_WRITE, body=body, gvk=gvk)

    def _deleting(
        self, action: str, identifier: str, schema: str, answers: list[str], query: Iterable[str]
    ) -> JSONObject:
        body: JSONObject = {"content": {"*/*": {"schema": reference(f"{META}.DeleteOptions")}}}
        return self._operation(action, identifier, schema, answers, query=query, body=body)

    def _operation(
        self,
        action: str,
        identifier: str,
        schema: str,
        answers: list[str],
        *,
        query: Iterable[str] = (),
        body: JSONObject | None = None,
        gvk: GroupVersionKind | None = None,
    ) -> JSONObject:
        operation: JSONObject = {"tags": [self._tag], "operationId": identifier}
        if parameters := _parameters(query):
            operation["parameters"] = parameters
        if body is not None:
            operation["requestBody"] = body
        content: JSONObject = {
            type_: {"schema": reference(schema)} for type_ in ("application/json", "application/yaml")
        }
        responses: JSONObject = {code: {"description": _ANSWERS[code], "content": content} for code in answers}
        operation["responses"] = {**responses, "401": {"description": "Unauthorized"}}
        group, version, kind = gvk or self._resource.gvk
        operation["x-kubernetes-action"] = action
        operation["x-kubernetes-group-version-kind"] = {"group": group, "version": version, "kind": kind}
        return operation

    def _path_parameters(self, *names: str) -> list[JSONValue]:
        named = [*names, "namespace"] if self._resource.namespaced else names
        in_path: list[JSONValue] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
            for name in named
        ]
        return [*in_path, *_parameters(("pretty",))]


def _parameters(names: Iterable[str]) -> list[JSONValue]:
    return [
        {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
        for name in names
    ]


def _camel(group: str, *, custom: bool) -> str:
    """`rbacAuthorization` for `rbac.authorization.k8s.io`, `core` for the core group."""
    if not group:
        return "core"
    first, *rest = (group if custom else group.removesuffix(".k8s.io")).split(".")
    return first + "".join(map(_capital, rest))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
