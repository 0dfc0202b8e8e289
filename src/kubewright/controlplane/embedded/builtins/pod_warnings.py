"""Warnings about pods, and templates of pods, that are accepted.

They name fields that are deprecated, or without the effect they seem to have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.builtins.names import dns_label, label_value
from kubewright.controlplane.embedded.builtins.values import number, objects, quantity

NODE_LABELS: Mapping[str, str] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
VOLUMES: Mapping[str, str] = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_ANNOTATIONS: Mapping[str, str] = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_OF_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
_NO_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_HIDES = "which may be dropped when using apply"
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_warnings(pod: JSONObject, old: JSONObject | None) -> list[str]:
    """Warnings about a new pod; updates have none."""
    if old is not None:
        return []
    return [*name_warnings(pod, "the Pod's hostname"), *template_warnings(pod, "")]


def name_warnings(obj: JSONObject, use: str = "Pod names and hostnames") -> list[str]:
    """About a name that names of hosts are made of."""
    wrong = dns_label(text(obj, "metadata", "name"))
    if not wrong:
        return []
    return [
        f"metadata.name: this is used in {use}, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(wrong)}]"
    ]


def template_warnings(template: JSONObject, path: str) -> list[str]:
    """About the specification and metadata of a pod; `path` leads to both, and is empty or ends in a dot."""
    return list(_warnings(template, path))


def _warnings(template: JSONObject, path: str) -> Iterator[str]:
    spec, annotations = mapping(template, "spec"), mapping(template, "metadata", "annotations")
    yield from _placement(spec, f"{path}spec")
    for name, why in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{path}metadata.annotations[{name}]: {why}"
    for index, volume in objects(spec, "volumes"):
        for name, why in VOLUMES.items():
            if name in volume:
                yield f"{path}spec.volumes[{index}].{'storageOS' if name == 'storageos' else name}: {why}"
        yield from claim_warnings(
            mapping(volume, "ephemeral", "volumeClaimTemplate", "spec"),
            f"{path}spec.volumes[{index}].ephemeral.volumeClaimTemplate.spec",
        )
    yield from _repeated(spec, "hostAliases", "ip", f"{path}spec")
    yield from _repeated(spec, "imagePullSecrets", "name", f"{path}spec")
    for index, secret in objects(spec, "imagePullSecrets"):
        if not text(secret, "name"):
            yield f'{path}spec.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractions(mapping(spec, "overhead"), f"{path}spec.overhead", "memory", "ephemeral-storage")
    if _SECCOMP in annotations and not mapping(spec, "securityContext", "seccompProfile"):
        yield f"{path}metadata.annotations[{_SECCOMP}]: {_NO_SECCOMP}"
    for where, container in _containers(spec, f"{path}spec"):
        yield from _annotated(container, annotations, f"{path}metadata.annotations")
        for kind in ("memory", "ephemeral-storage"):
            for bound in ("limits", "requests"):
                yield from _fractions(mapping(container, "resources", bound), f"{where}.resources.{bound}", kind)
        yield from _hidden_variables(container, where)
    yield from _ports(spec, f"{path}spec")
    if number(spec.get("terminationGracePeriodSeconds")) < 0:
        yield (
            f"{path}spec.terminationGracePeriodSeconds: "
            "must be >= 0; negative values are invalid and will be treated as 1"
        )
    yield from _without_selector(spec, f"{path}spec.affinity")


def _containers(spec: JSONObject, path: str) -> Iterator[tuple[str, JSONObject]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in objects(spec, kind):
            yield f"{path}.{kind}[{index}]", container


def _placement(spec: JSONObject, path: str) -> Iterator[str]:
    for label in mapping(spec, "nodeSelector"):
        if label in NODE_LABELS:
            yield f"{path}.nodeSelector[{label}]: {NODE_LABELS[label]}"
    if affinity := mapping(spec, "affinity", "nodeAffinity"):
        where = f"{path}.affinity.nodeAffinity"
        for index, term in objects(affinity, _REQUIRED, "nodeSelectorTerms"):
            yield from node_term_warnings(term, f"{where}.{_REQUIRED}.nodeSelectorTerms[{index}]")
        for index, term in objects(affinity, _PREFERRED):
            preference = f"{where}.{_PREFERRED}[{index}].preference"
            yield from node_term_warnings(mapping(term, "preference"), preference, values=True)
    for index, constraint in objects(spec, "topologySpreadConstraints"):
        where, key = f"{path}.topologySpreadConstraints[{index}]", text(constraint, "topologyKey")
        if key in NODE_LABELS:
            yield f"{where}.topologyKey: {key} is {NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"


def node_term_warnings(term: JSONObject, path: str, *, values: bool = False) -> Iterator[str]:
    """Warnings about the node labels that a term selects by, and about their values."""
    for index, expression in objects(term, "matchExpressions"):
        where, key = f"{path}.matchExpressions[{index}]", text(expression, "key")
        if key in NODE_LABELS:
            yield f"{where}.key: {key} is {NODE_LABELS[key]}"
        for position, value in enumerate(items(expression, "values") if values else ()):
            for wrong in label_value(str(value)):
                yield f"{where}.values[{position}]: {value} is invalid, {wrong}"


def claim_warnings(spec: JSONObject, path: str) -> Iterator[str]:
    """About the specification of a claim of storage."""
    for bound in ("requests", "limits"):
        yield from _fractions(mapping(spec, "resources", bound), f"{path}.resources.{bound}", "storage")


def _fractions(amounts: JSONObject, path: str, *names: str) -> Iterator[str]:
    for name in names:
        if name in amounts and quantity(amounts[name]).milli_value % 1000:
            yield f"{path}[{name}]: fractional byte value {quoted(str(amounts[name]))} is invalid, must be an integer"


def _repeated(spec: JSONObject, kind: str, field: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in objects(spec, kind):
        value = text(item, field)
        if value in seen:
            yield f"{path}.{kind}[{index}].{field}: duplicate {field} {quoted(value)}"
        seen.add(value)


def _annotated(container: JSONObject, annotations: JSONObject, path: str) -> Iterator[str]:
    name = text(container, "name")
    seccomp, apparmor = f"{_SECCOMP_OF_CONTAINER}{name}", f"{_APPARMOR_OF_CONTAINER}{name}"
    if seccomp in annotations and not mapping(container, "securityContext", "seccompProfile"):
        yield f"{path}[{seccomp}]: {_NO_SECCOMP}"
    if apparmor in annotations and not mapping(container, "securityContext", "appArmorProfile"):
        yield f'{path}[{apparmor}]: deprecated since v1.30; use the "appArmorProfile" field instead'


def _hidden_variables(container: JSONObject, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in objects(container, "env"):
        name, value = text(variable, "name"), text(variable, "value")
        reference = f"$({name})"
        # A value that is added to the one before is fine.
        hides = "valueFrom" in variable or value == reference or reference not in value
        if name in seen and hides:
            yield f"{path}.env[{index}]: hides previous definition of {quoted(name)}, {_HIDES}"
        seen.add(name)


def _ports(spec: JSONObject, path: str) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, JSONObject]]] = {}
    names: dict[str, str] = {}
    clashes: list[str] = []
    for where, container in _containers(spec, path):
        for index, port in objects(container, "ports"):
            port_path = f"{where}.ports[{index}]"
            others = seen.setdefault((number(port.get("containerPort")), text(port, "protocol")), [])
            for other_path, other in others:
                yield from _overlap(port, port_path, other, other_path)
            others.append((port_path, port))
            if name := text(port, "name"):
                first = names.setdefault(name, port_path)
                if first != port_path:
                    clashes.append(
                        f"{port_path}: duplicate port name {quoted(name)} with {first}, "
                        f"services and probes that select ports by name will use {first}"
                    )
    yield from clashes


def _overlap(port: JSONObject, port_path: str, other: JSONObject, other_path: str) -> Iterator[str]:
    address, other_address = text(port, "hostIP"), text(other, "hostIP")
    number_, other_number = number(port.get("hostPort")), number(other.get("hostPort"))
    if (address, number_) == (other_address, other_number):
        yield f"{port_path}: duplicate port definition with {other_path}"
    elif not number_ or not other_number:
        yield f"{port_path}: overlapping port definition with {other_path}"
    elif number_ == other_number and bool(address) != bool(other_address):
        yield f"{port_path}: dangerously ambiguous port definition with {other_path}"


def _without_selector(spec: JSONObject, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(spec, "affinity", kind)
        for index, term in objects(affinity, _REQUIRED):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, term in objects(affinity, _PREFERRED):
            if mapping(term, "podAffinityTerm").get("labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"
