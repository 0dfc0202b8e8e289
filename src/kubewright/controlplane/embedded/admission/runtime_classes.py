"""RuntimeClass: a pod takes over the overhead and the scheduling of the runtime class that it names."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.admission.pods import displayed_name
from kubewright.controlplane.embedded.apimachinery.document import at, copied, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden
from kubewright.controlplane.embedded.builtins.values import quantity
from kubewright.controlplane.embedded.rest.call import Call


def give_runtime_class(call: Call, pod: JSONObject) -> None:
    """Complete a new pod by its runtime class. Raises the 403 when that does not exist or contradicts the pod."""
    runtime_class = _class_of(call, pod)
    if runtime_class is None:
        return
    spec = inside(pod, "spec")
    overhead = mapping(runtime_class, "overhead", "podFixed")
    if at(runtime_class, "overhead") is not None:
        if mapping(spec, "overhead") and not _are_equal(mapping(spec, "overhead"), overhead):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = copied(overhead)
    if at(runtime_class, "scheduling") is None:
        return
    for key, value in mapping(runtime_class, "scheduling", "nodeSelector").items():
        own = mapping(spec, "nodeSelector").get(key, value)
        if own != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            )
            raise _refused(pod, why)
        inside(spec, "nodeSelector")[key] = value
    merged = _merged(items(spec, "tolerations"), items(runtime_class, "scheduling", "tolerations"))
    if merged:
        spec["tolerations"] = merged


def check_overhead(call: Call, pod: JSONObject) -> None:
    """Raise the 403 for a new pod whose overhead is not that of its runtime class."""
    runtime_class, own = _class_of(call, pod), at(pod, "spec", "overhead")
    if runtime_class is not None and at(runtime_class, "overhead") is not None:
        if not _are_equal(mapping(runtime_class, "overhead", "podFixed"), mapping(pod, "spec", "overhead")):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    elif own is not None:
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _class_of(call: Call, pod: JSONObject) -> JSONObject | None:
    name = at(pod, "spec", "runtimeClassName")
    if not isinstance(name, str):
        return None
    entry = call.services.store.get(f"/node.k8s.io/runtimeclasses/{name}")
    if entry is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    return entry.value


def _refused(pod: JSONObject, why: str) -> StatusError:
    return forbidden("pods", "", displayed_name(pod), why)


def _are_equal(one: JSONObject, other: JSONObject) -> bool:
    return one.keys() == other.keys() and all(quantity(one[name]) == quantity(other[name]) for name in one)


def _merged(first: list[JSONValue], second: list[JSONValue]) -> list[JSONValue]:
    """All tolerations without those that another one covers."""
    every, kept = [*first, *second], list[JSONValue]()
    for index, one in enumerate(every):
        if not any(_covers(other, one) for other in (*kept, *every[index + 1 :])):
            kept.append(one)
    return kept


def _covers(wide: JSONValue, narrow: JSONValue) -> bool:
    if wide == narrow:
        return True
    if text(wide, "key") != text(narrow, "key") and (text(wide, "key") or text(wide, "operator") != "Exists"):
        return False
    if text(wide, "effect") not in ("", text(narrow, "effect")):
        return False
    if text(wide, "effect") == "NoExecute":
        longest, shortest = at(wide, "tolerationSeconds"), at(narrow, "tolerationSeconds")
        if isinstance(longest, int) and (not isinstance(shortest, int) or longest < shortest):
            return False
    if text(wide, "operator") in ("", "Equal"):
        return text(narrow, "operator") in ("", "Equal") and text(wide, "value") == text(narrow, "value")
    return text(wide, "operator") == "Exists"
