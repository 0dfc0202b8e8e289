"""One write as policies, and whatever else is configured to judge it, see it.

The object is shown in the version in which a rule asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.pods import displayed_name
from kubewright.controlplane.embedded.apimachinery.document import copied_object, items, text
from kubewright.controlplane.embedded.builtins.registry import CONVERSIONS
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call, Operation
from kubewright.controlplane.embedded.rest.scaling import scale_of
from kubewright.controlplane.embedded.rest.suspension import Settled, completed

_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
# What is sent to endpoints below an object, where it is not the object itself.
_BODIES: Mapping[tuple[str, str], GroupVersionKind] = {
    ("pods", "attach"): GroupVersionKind("", "v1", "PodAttachOptions"),
    ("pods", "binding"): GroupVersionKind("", "v1", "Binding"),
    ("pods", "eviction"): GroupVersionKind("policy", "v1", "Eviction"),
    ("pods", "exec"): GroupVersionKind("", "v1", "PodExecOptions"),
    ("pods", "portforward"): GroupVersionKind("", "v1", "PodPortForwardOptions"),
    ("pods", "proxy"): GroupVersionKind("", "v1", "PodProxyOptions"),
    ("services", "proxy"): GroupVersionKind("", "v1", "ServiceProxyOptions"),
    ("nodes", "proxy"): GroupVersionKind("", "v1", "NodeProxyOptions"),
    ("serviceaccounts", "token"): GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest"),
}
_OPTIONS: Mapping[Operation, str] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class AdmissionRequest:
    """A request to create, update, delete or connect, with the object before and after."""

    def __init__(self, call: Call, operation: Operation, new: JSONObject | None, old: JSONObject | None) -> None:
        self.call = call
        self.operation = operation
        self.new = new
        self.old = old
        target = call.target
        self.subresource = target.subresource
        self.name = target.name
        if not self.name and new is not None:
            self.name = text(new, "metadata", "name")
        self.namespace = target.namespace
        if not self.namespace and self.is_namespace:
            # A namespace is within itself.
            self.namespace = self.name
        self._shown: dict[tuple[bool, GroupVersionKind], JSONObject | None] = {}

    @property
    def is_namespace(self) -> bool:
        """Whether it is about a namespace."""
        return not self.call.resource.gvk.group and self.call.resource.plural == "namespaces"

    @property
    def displayed_name(self) -> str:
        """How a refusal names the object."""
        return self.name or (displayed_name(self.new) if self.new is not None else "Unknown")

    @property
    def kind(self) -> GroupVersionKind:
        """The kind of what is sent."""
        resource = self.call.resource
        if self.subresource == "scale":
            return _SCALE
        return (
            _BODIES.get((resource.plural, self.subresource), resource.gvk) if not resource.gvk.group else resource.gvk
        )

    def kind_in(self, resource: ResourceType) -> GroupVersionKind:
        """The kind of what is sent, in the version of an equivalent resource."""
        return resource.gvk if self.kind == self.call.resource.gvk else self.kind

    def object_in(self, resource: ResourceType) -> JSONObject | None:
        """The object after the write, in the version of an equivalent resource; None when it is deleted."""
        return self._remembered(self.new, resource, is_new=True)

    def old_object_in(self, resource: ResourceType) -> JSONObject | None:
        """The object before the write; None when it is created."""
        return self._remembered(self.old, resource, is_new=False)

    @property
    def settled(self) -> Settled:
        """The outcomes for which the request was suspended."""
        return {} if self.call.settled is None else self.call.settled

    async def ready_in(self, resource: ResourceType) -> None:
        """Wait until both objects are converted to the version of an equivalent resource. Raises StatusError."""
        await completed(lambda: (self.object_in(resource), self.old_object_in(resource)), self.settled)

    def replace(self, new: JSONObject) -> None:
        """Put another object instead of the new one."""
        self.new = new
        self._shown.clear()

    def _remembered(self, value: JSONObject | None, resource: ResourceType, *, is_new: bool) -> JSONObject | None:
        key = is_new, resource.gvk
        if key not in self._shown:
            self._shown[key] = None if value is None else self._seen(value, resource)
        return self._shown[key]

    def _seen(self, value: JSONObject, resource: ResourceType) -> JSONObject:
        if self.subresource == "scale":
            return scale_of(self.call, value)
        kind = self.kind_in(resource)
        if resource.gvk != self.call.resource.gvk:
            value = in_version(value, self.call.resource, resource, self.settled)
        return {"apiVersion": kind.api_version, "kind": kind.kind, **value}

    def document(self, resource: ResourceType) -> JSONObject:
        """The request as `AdmissionRequest` describes it to a rule that matched `resource`, without its objects."""
        requested = self.call.resource
        found: JSONObject = {
            "kind": _kind(self.kind_in(resource)),
            "resource": _resource(resource),
            "requestKind": _kind(self.kind),
            "requestResource": _resource(requested),
            "operation": self.operation,
            "userInfo": self.call.user.document(),
            "dryRun": self.is_dry_run,
        }
        if self.operation in _OPTIONS:
            found["options"] = self._options()
        if self.subresource:
            found["subResource"] = found["requestSubResource"] = self.subresource
        if self.name:
            found["name"] = self.name
        if self.namespace:
            found["namespace"] = self.namespace
        return found

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing will be stored."""
        return self.call.query.dry_run or (self.operation == "DELETE" and bool(items(self.call.deletion, "dryRun")))

    def _options(self) -> JSONObject:
        kind: JSONObject = {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"}
        if self.operation == "DELETE":
            given = self.call.deletion or {}
            return kind | {name: value for name, value in given.items() if name not in kind and value not in (None, [])}
        query = self.call.query
        if stages := query.repeated.get("dryRun"):
            stated: list[JSONValue] = list(stages)
            kind["dryRun"] = stated
        return kind | {name: query.text(name) for name in ("fieldManager", "fieldValidation") if query.text(name)}


def _kind(gvk: GroupVersionKind) -> JSONObject:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(resource: ResourceType) -> JSONObject:
    return {"group": resource.gvk.group, "version": resource.gvk.version, "resource": resource.plural}


def in_version(value: JSONObject, current: ResourceType, wanted: ResourceType, settled: Settled) -> JSONObject:
    """An object of one version as another version of its kind shows it. Raises Suspended where webhooks convert."""
    if current.convert is not None:
        return current.convert(value, current.gvk.version, wanted.gvk.version, settled)
    to_storage, _ = CONVERSIONS.get(_versioned(current), (None, None))
    _, from_storage = CONVERSIONS.get(_versioned(wanted), (None, None))
    if to_storage is not None:
        value = to_storage(copied_object(value))
    return value if from_storage is None else from_storage(copied_object(value))


def _versioned(resource: ResourceType) -> str:
    return f"{resource.gvk.api_version} {resource.gvk.kind}"
