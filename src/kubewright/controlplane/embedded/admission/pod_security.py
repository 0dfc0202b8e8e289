"""PodSecurity: the labels of a namespace say which standard its pods are held to, and which they are warned about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.pods import displayed_name
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden, invalid, invalid_value
from kubewright.controlplane.embedded.builtins.pod_security import LATEST, Level, violations
from kubewright.controlplane.embedded.rest.call import Call

_PREFIX = "pod-security.kubernetes.io/"
_LEVELS: tuple[Level, ...] = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_IGNORED = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
_TEMPLATES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "replicationcontrollers"): ("spec", "template"),
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}


class Standard(NamedTuple):
    """A level in a version."""

    level: Level = "privileged"
    version: str = "latest"

    def violated_by(self, pod: JSONValue) -> str:
        """What a pod violates, with the details; empty when nothing."""
        return ", ".join(map(str, violations(self.level, self._minor, pod)))

    def reasons_against(self, pod: JSONValue) -> str:
        """What a pod violates, in short; empty when nothing."""
        return ", ".join(found.reason for found in violations(self.level, self._minor, pod))

    @property
    def _minor(self) -> int:
        return LATEST if self.version == "latest" else min(LATEST, int(self.version[3:][:4]))

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


def check_pod_security(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    """Refuse or warn about a pod, a template of pods, or the labels of a namespace."""
    resource, subresource = (call.resource.gvk.group, call.resource.plural), call.target.subresource
    if resource == ("", "namespaces") and not subresource:
        _check_namespace(call, new, old)
    elif resource == ("", "pods") and subresource not in _IGNORED and (old is None or _differs(new, old)):
        _check_pod(call, new)
    elif resource in _TEMPLATES and not subresource:
        template = at(new, *_TEMPLATES[resource])
        if template is not None:
            labels = _labels_of(call)
            _audit(call, labels, template)
            _warn(call, labels, template)


def _check_pod(call: Call, pod: JSONObject) -> None:
    labels = _labels_of(call)
    enforced = _standard(labels, "enforce")
    call.annotations[f"{_PREFIX}enforce-policy"] = str(enforced)
    _audit(call, labels, pod)
    if found := enforced.violated_by(pod):
        raise forbidden("pods", "", displayed_name(pod), f'violates PodSecurity "{enforced}": {found}')
    _warn(call, labels, pod)


def _audit(call: Call, labels: JSONObject, pod: JSONValue) -> None:
    standard = _standard(labels, "audit")
    if found := standard.violated_by(pod):
        call.annotations[f"{_PREFIX}audit-violations"] = f'would violate PodSecurity "{standard}": {found}'


def _warn(call: Call, labels: JSONObject, pod: JSONValue) -> None:
    standard = _standard(labels, "warn")
    if found := standard.violated_by(pod):
        call.warnings.append(f'would violate PodSecurity "{standard}": {found}')


def _labels_of(call: Call) -> JSONObject:
    entry = call.services.store.get(f"/core/namespaces/{call.target.namespace}")
    return mapping(entry.value, "metadata", "labels") if entry is not None else {}


def _standard(labels: JSONObject, mode: str) -> Standard:
    """The standard of a mode. What cannot be read is taken for the strictest where it is enforced, else for none."""
    level, version = labels.get(f"{_PREFIX}{mode}"), labels.get(f"{_PREFIX}{mode}-version", "latest")
    if mode == "warn" and level is None:
        enforced = labels.get(f"{_PREFIX}enforce")
        if enforced in ("baseline", "restricted"):
            # What is enforced is warned of as well: templates are not refused.
            level = enforced
            if f"{_PREFIX}warn-version" not in labels:
                version = labels.get(f"{_PREFIX}enforce-version", "latest")
    known = next((each for each in _LEVELS if each == level), None)
    if known is None:
        known = "privileged" if level is None or mode != "enforce" else "restricted"
    return Standard(known, version if isinstance(version, str) and _VERSION.fullmatch(version) else "latest")


def _differs(pod: JSONObject, old: JSONObject) -> bool:
    """Whether an update of a pod is one that the standards could be about: another image or another container."""
    return _images(pod) != _images(old)


def _images(pod: JSONObject) -> list[tuple[str, str, str]]:
    return [
        (field, text(container, "name"), text(container, "image"))
        for field in ("containers", "initContainers", "ephemeralContainers")
        for container in items(pod, "spec", field)
    ]


# Namespaces


def _check_namespace(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    labels = mapping(new, "metadata", "labels")
    before = mapping(old, "metadata", "labels") if old is not None else {}
    wrong = list(_wrong_labels(labels))
    if wrong and (old is None or wrong != list(_wrong_labels(before))):
        raise invalid("Namespace", "", text(new, "metadata", "name"), wrong)
    if old is None:
        return
    enforced, earlier = _standard(labels, "enforce"), _standard(before, "enforce")
    relaxed = enforced.version == earlier.version and _LEVELS.index(enforced.level) <= _LEVELS.index(earlier.level)
    if enforced.level != "privileged" and not relaxed:
        call.warnings += _warnings_of_pods(call, text(new, "metadata", "name"), enforced)


def _wrong_labels(labels: JSONObject) -> Iterator[FieldError]:
    for mode in ("enforce", "audit", "warn"):
        name = f"{_PREFIX}{mode}"
        if name in labels and labels[name] not in _LEVELS:
            why = f"must be one of {', '.join(_LEVELS)}"
            yield invalid_value(f"metadata.labels[{name}]", labels[name], why)
        version = labels.get(f"{name}-version")
        if isinstance(version, str) and version != "latest" and not _VERSION.fullmatch(version):
            yield invalid_value(f"metadata.labels[{name}-version]", version, 'must be "latest" or "v1.x"')


def _warnings_of_pods(call: Call, namespace: str, enforced: Standard) -> list[str]:
    pods: dict[str, list[str]] = {}
    for entry in call.services.store.range(f"/core/pods/{namespace}/").entries:
        if reasons := enforced.reasons_against(entry.value):
            pods.setdefault(reasons, []).append(text(entry.value, "metadata", "name"))
    if not pods:
        return []
    found = []
    for reasons, names in pods.items():
        others = len(names) - 1
        more = f" (and {others} other pod{'s' if others > 1 else ''})" if others else ""
        found.append(f"{min(names)}{more}: {reasons}")
    summary = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'
    return [summary, *sorted(found)]
