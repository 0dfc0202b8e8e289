"""LimitRanger: containers get the defaults of their namespace, and pods and claims stay within its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.admission.pods import displayed_name
from kubewright.controlplane.embedded.apimachinery.document import inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden
from kubewright.controlplane.embedded.builtins.pod_resources import Part, container_resources, pod_resources
from kubewright.controlplane.embedded.builtins.values import quantity
from kubewright.controlplane.embedded.rest.call import Call

_ANNOTATION = "kubernetes.io/limit-ranger"
_ROLES = (("containers", "container"), ("initContainers", "init container"))

_PARTS: tuple[Part, Part] = ("requests", "limits")

Amounts = Mapping[str, Quantity]


def give_limits(call: Call, pod: JSONObject) -> None:
    """Fill in the requests and limits of the containers of a pod where they have none."""
    for limit_range in _limit_ranges(call):
        notes = list(_fill_in(pod, limit_range))
        if notes:
            annotations = inside(pod, "metadata", "annotations")
            annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def check_limits(call: Call, obj: JSONObject) -> None:
    """Raise the 403 for a pod or a claim that is beyond the limits of its namespace."""
    for limit_range in _limit_ranges(call):
        rules = _of_pod if call.resource.plural == "pods" else _of_claim
        found = list(dict.fromkeys(rules(obj, limit_range)))
        if found:
            why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise forbidden(call.resource.plural, "", displayed_name(obj), why)


def _limit_ranges(call: Call) -> list[JSONObject]:
    entries = call.services.store.range(f"/core/limitranges/{call.target.namespace}/").entries
    return [entry.value for entry in entries]


def _fill_in(pod: JSONObject, limit_range: JSONObject) -> Iterator[str]:
    """What was set, as the annotation says it."""
    defaults: dict[str, JSONObject] = {"requests": {}, "limits": {}}
    for limit in items(limit_range, "spec", "limits"):
        if text(limit, "type") == "Container":
            defaults["requests"] |= mapping(limit, "defaultRequest")
            defaults["limits"] |= mapping(limit, "default")
    for field, role in _ROLES:
        for container in items(pod, "spec", field):
            for part, word in (("requests", "request"), ("limits", "limit")):
                missing = sorted(defaults[part].keys() - mapping(container, "resources", part).keys())
                if missing and isinstance(container, dict):
                    present = inside(container, "resources", part)
                    present |= {name: defaults[part][name] for name in missing}
                    yield f"{', '.join(missing)} {word} for {role} {text(container, 'name')}"


def _of_pod(pod: JSONObject, limit_range: JSONObject) -> Iterator[str]:
    for limit in items(limit_range, "spec", "limits"):
        if text(limit, "type") == "Container":
            for field, _ in _ROLES:
                for container in items(pod, "spec", field):
                    requests, limits = (container_resources(container, part) for part in _PARTS)
                    yield from _beyond(limit, requests, limits)
        elif text(limit, "type") == "Pod":
            yield from _beyond(limit, pod_resources(pod, "requests"), pod_resources(pod, "limits"))


def _of_claim(claim: JSONObject, limit_range: JSONObject) -> Iterator[str]:
    requests = {name: quantity(amount) for name, amount in mapping(claim, "spec", "resources", "requests").items()}
    for limit in items(limit_range, "spec", "limits"):
        if text(limit, "type") != "PersistentVolumeClaim":
            continue
        for name, least in _amounts(limit, "min"):
            yield from _too_little(f"minimum {name} usage per PersistentVolumeClaim is {least}", name, least, requests)
        for name, most in _amounts(limit, "max"):
            rule = f"maximum {name} usage per PersistentVolumeClaim is {most}"
            if name not in requests:
                yield f"{rule}.  No request is specified"
            elif requests[name] > most:
                yield f"{rule}, but request is {requests[name]}"


def _beyond(limit: JSONValue, requests: Amounts, limits: Amounts) -> Iterator[str]:
    what = text(limit, "type")
    for name, least in _amounts(limit, "min"):
        yield from _too_little(f"minimum {name} usage per {what} is {least}", name, least, requests, limits)
    for name, most in _amounts(limit, "max"):
        rule = f"maximum {name} usage per {what} is {most}"
        if name not in limits:
            yield f"{rule}.  No limit is specified"
        elif limits[name] > most:
            yield f"{rule}, but limit is {limits[name]}"
        elif name in requests and requests[name] > most:
            yield f"{rule}, but request is {requests[name]}"
    for name, most in _amounts(limit, "maxLimitRequestRatio"):
        yield from _too_wide(f"{name} max limit to request ratio per {what} is {most}", name, most, requests, limits)


def _too_little(
    rule: str, name: str, least: Quantity, requests: Amounts, limits: Amounts | None = None
) -> Iterator[str]:
    if name not in requests:
        yield f"{rule}.  No request is specified"
    elif requests[name] < least:
        yield f"{rule}, but request is {requests[name]}"
    elif limits is not None and name in limits and limits[name] < least:
        yield f"{rule}, but limit is {limits[name]}"


def _too_wide(rule: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    if not requests.get(name):
        yield f"{rule}, but no request is specified or request is 0"
    elif not limits.get(name):
        yield f"{rule}, but no limit is specified or limit is 0"
    elif (ratio := limits[name].as_decimal() / requests[name].as_decimal()) > most.as_decimal():
        yield f"{rule}, but provided ratio is {float(ratio):f}"


def _amounts(limit: JSONValue, field: str) -> list[tuple[str, Quantity]]:
    return [(name, quantity(amount)) for name, amount in sorted(mapping(limit, field).items())]
