"""The policies that are bound, each compiled once per change, and the parameters that bindings give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.matching import Equivalents, RequestMatcher
from kubewright.controlplane.embedded.admission.request import AdmissionRequest, in_version
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import not_found
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.builtins.label_selectors import matches
from kubewright.controlplane.embedded.cel.admission import Inputs
from kubewright.controlplane.embedded.cel.library.authorizer import AuthorizerValue, ResourceCheck
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import ObjectStore
from kubewright.controlplane.embedded.rest.suspension import Settled

GROUP = "/admissionregistration.k8s.io/"
_EXEMPT = frozenset(
    (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
_NAMESPACE_METADATA = frozenset(
    (
        *("name", "generateName", "namespace", "labels", "annotations", "uid", "creationTimestamp", "generation"),
        *("deletionGracePeriodSeconds", "deletionTimestamp", "resourceVersion", "finalizers"),
    )
)

E = TypeVar("E")


class ConfigurationError(Exception):
    """A policy or binding that cannot be applied to a request it is for."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a binding says about a policy."""

    name: str
    spec: JSONObject
    matcher: RequestMatcher


@dataclass(frozen=True, slots=True)
class BoundPolicy(Generic[E]):
    """A policy and its bindings; without bindings a policy has no effect."""

    name: str
    spec: JSONObject
    matcher: RequestMatcher
    evaluator: E
    bindings: Sequence[Binding]

    @property
    def fails(self) -> bool:
        """Whether an error refuses the request."""
        return text(self.spec, "failurePolicy") != "Ignore"


class PolicySource(Generic[E]):
    """The bound policies of one kind, in the order of their names.

    Guarantee: after `invalidate`, no request is judged by what was there before. A policy whose specification did not
    change is not compiled again.
    """

    def __init__(self, store: ObjectStore, plural: str, compile_policy: Callable[[JSONObject], E]) -> None:
        self._store = store
        self._plural = plural
        self._compile = compile_policy
        self._compiled: dict[tuple[str, object], tuple[RequestMatcher, E]] = {}
        self._bound: Sequence[BoundPolicy[E]] | None = None

    def invalidate(self) -> None:
        """A policy or binding changed."""
        self._bound = None

    def bound(self) -> Sequence[BoundPolicy[E]]:
        """All that are bound."""
        if self._bound is None:
            self._bound = self._read()
        return self._bound

    def _read(self) -> Sequence[BoundPolicy[E]]:
        bindings: dict[str, list[Binding]] = {}
        singular = self._plural.removesuffix("ies") + "y"
        for entry in self._store.range(f"{GROUP}{singular}bindings/").entries:
            spec = mapping(entry.value, "spec")
            matcher = RequestMatcher(mapping(spec, "matchResources"))
            binding = Binding(text(entry.value, "metadata", "name"), spec, matcher)
            bindings.setdefault(text(spec, "policyName"), []).append(binding)
        found: list[BoundPolicy[E]] = []
        compiled: dict[tuple[str, object], tuple[RequestMatcher, E]] = {}
        for name in sorted(bindings):
            policy = self._store.get(f"{GROUP}{self._plural}/{name}")
            if policy is None:
                continue
            spec = mapping(policy.value, "spec")
            key = text(policy.value, "metadata", "uid"), at(policy.value, "metadata", "generation")
            compiled[key] = self._compiled.get(key) or (
                RequestMatcher(mapping(spec, "matchConstraints")),
                self._compile(spec),
            )
            found.append(BoundPolicy(name, spec, *compiled[key], bindings[name]))
        self._compiled = compiled
        return found


class PolicyContext:
    """What policies need of the server: the namespace of a request, parameters, other versions, rights."""

    def __init__(self, store: ObjectStore, catalog: Catalog, authorizer: Authorizer) -> None:
        self._store = store
        self._catalog = catalog
        self._authorizer = authorizer
        self._equivalents = Equivalents(catalog)

    def is_exempt(self, request: AdmissionRequest) -> bool:
        """Policies and bindings are not judged by policies."""
        resource = request.call.resource
        return resource.plural in _EXEMPT and resource.gvk.group == "admissionregistration.k8s.io"

    def match(self, matcher: RequestMatcher, request: AdmissionRequest) -> ResourceType | None:
        """The resource that a matcher matched."""
        return matcher.match(request, self._labels_of, self._equivalents)

    def _labels_of(self, request: AdmissionRequest) -> JSONObject:
        if request.is_namespace and not request.subresource and request.new is not None:
            return mapping(request.new, "metadata", "labels")
        return mapping(self._namespace(request.namespace), "metadata", "labels")

    def _namespace(self, name: str) -> JSONObject:
        entry = self._store.get(f"/core/namespaces/{name}")
        if entry is None:
            raise not_found("namespaces", "", name)
        return entry.value

    def inputs(self, request: AdmissionRequest, resource: ResourceType) -> Inputs:
        """What expressions see of a request that matched `resource`, without parameters."""
        authorizer = AuthorizerValue(request.call.user, self._authorizer.authorize)
        requested = request.call.resource
        return Inputs(
            new_object=request.object_in(resource),
            old_object=request.old_object_in(resource),
            namespace_object=self._namespace_object(request),
            request=request.document(resource),
            authorizer=authorizer,
            request_resource=ResourceCheck(
                authorizer,
                requested.gvk.group,
                requested.plural,
                request.subresource,
                request.namespace,
                request.name,
            ),
        )

    def _namespace_object(self, request: AdmissionRequest) -> JSONObject | None:
        if not request.namespace or request.is_namespace:
            return None
        namespace = self._namespace(request.namespace)
        metadata = mapping(namespace, "metadata")
        shown = {name: value for name, value in metadata.items() if name in _NAMESPACE_METADATA}
        return {**namespace, "metadata": shown}

    def parameters(
        self, spec: JSONObject, binding: Binding, namespace: str, settled: Settled
    ) -> Iterator[JSONObject | None]:
        """The parameters with which a binding applies a policy: None when it has none. Raises ConfigurationError."""
        kind, reference = at(spec, "paramKind"), at(binding.spec, "paramRef")
        if kind is None or reference is None:
            yield None
            return
        resource = self.parameter_resource(spec)
        within = text(reference, "namespace")
        if not resource.namespaced and within:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if resource.namespaced and not (within or namespace):
            raise ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        found = False
        for value in self._referenced(resource, mapping(reference), within or namespace, settled):
            found = True
            gvk = resource.gvk
            yield {"apiVersion": gvk.api_version, "kind": gvk.kind, **value}
        if not found and text(reference, "parameterNotFoundAction") == "Deny":
            raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")

    def parameter_resource(self, spec: JSONObject) -> ResourceType:
        """The resource of a policy's `paramKind`. Raises ConfigurationError when there is none."""
        group, _, version = text(spec, "paramKind", "apiVersion").rpartition("/")
        kind = text(spec, "paramKind", "kind")
        resource = self._catalog.find_kind(group, version, kind)
        if resource is None:
            raise ConfigurationError(
                f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"
            )
        return resource

    def _referenced(
        self, resource: ResourceType, reference: JSONObject, namespace: str, settled: Settled
    ) -> Iterator[JSONObject]:
        store = self._store if resource.view is None else resource.view(self._store, settled, False)
        stored_as = self._stored(resource)
        if name := text(reference, "name"):
            entry = store.get(resource.key(namespace, name))
            if entry is not None:
                yield in_version(entry.value, stored_as, resource, settled)
            return
        prefix = f"{resource.prefix}{namespace}/" if resource.namespaced else resource.prefix
        for entry in store.range(prefix).entries:
            if matches(reference.get("selector"), mapping(entry.value, "metadata", "labels")):
                yield in_version(entry.value, stored_as, resource, settled)

    def _stored(self, resource: ResourceType) -> ResourceType:
        """The version in which objects of a resource are stored."""
        if resource.storage is None or resource.custom:
            return resource
        gvk = resource.storage
        return self._catalog.find_kind(gvk.group, gvk.version, gvk.kind) or resource
