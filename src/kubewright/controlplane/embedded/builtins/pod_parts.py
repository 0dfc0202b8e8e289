"""Parts of a pod that have endpoints of their own, by which they alone are changed: debug containers and resources."""

from __future__ import annotations

from dataclasses import replace

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden_field, invalid_value
from kubewright.controlplane.embedded.builtins.metadata import validate_change
from kubewright.controlplane.embedded.builtins.pod_spec import validate_pod_spec
from kubewright.controlplane.embedded.builtins.pods import difference, quality_of_service
from kubewright.controlplane.embedded.builtins.values import Errors, objects
from kubewright.controlplane.embedded.registry.resources import Strategy

_KEPT = ("labels", "annotations", "finalizers", "ownerReferences")
_MUTABLE = ("cpu", "memory")


def debugging(pods: Strategy) -> Strategy:
    """The rules of the endpoint `ephemeralcontainers`: containers can be added, and stay as they are."""
    return replace(pods, prepare_update=_only_debug_containers, validate_update=_validate_debug_containers)


def resizing(pods: Strategy) -> Strategy:
    """The rules of the endpoint `resize`: containers can be given other amounts of processor and memory."""
    return replace(pods, prepare_update=_only_resources, validate_update=_validate_resources)


def _take_back(new: JSONObject, old: JSONObject) -> None:
    """Everything but the specification is as it was."""
    new["status"] = mapping(old, "status")
    metadata, before = inside(new, "metadata"), mapping(old, "metadata")
    for name in _KEPT:
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def _only_debug_containers(new: JSONObject, old: JSONObject) -> None:
    containers = items(new, "spec", "ephemeralContainers")
    _take_back(new, old)
    spec = copied_object(mapping(old, "spec"))
    spec.pop("ephemeralContainers", None)
    new["spec"] = {**spec, "ephemeralContainers": list(containers)} if containers else spec


def _validate_debug_containers(new: JSONObject, old: JSONObject) -> Errors:
    errors = [*validate_change(new, old), *validate_pod_spec(mapping(new, "spec"), "spec")]
    present = {
        text(container, "name"): container for _, container in objects(mapping(new, "spec"), "ephemeralContainers")
    }
    for _, before in objects(mapping(old, "spec"), "ephemeralContainers"):
        name = text(before, "name")
        if name not in present:
            why = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(forbidden_field("spec.ephemeralContainers", why))
        elif present[name] != before:
            why = f'existing ephemeral containers "{name}" may not be changed\n{difference(before, present[name])}'
            errors.append(forbidden_field("spec.ephemeralContainers", why))
    return errors


def _only_resources(new: JSONObject, old: JSONObject) -> None:
    sent = mapping(new, "spec")
    spec = copied_object(mapping(old, "spec"))
    for kind in ("containers", "initContainers"):
        wanted = [container for _, container in objects(sent, kind)]
        found = [container for _, container in objects(spec, kind)]
        if [text(container, "name") for container in wanted] != [text(container, "name") for container in found]:
            return  # refused as it is
        for container, resized in zip(found, wanted, strict=True):
            for name in ("resources", "resizePolicy"):
                if name in resized:
                    container[name] = resized[name]
                else:
                    container.pop(name, None)
    _take_back(new, old)
    new["spec"] = spec


def _validate_resources(new: JSONObject, old: JSONObject) -> Errors:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    errors = [*validate_change(new, old), *validate_pod_spec(spec, "spec")]
    quality = text(old, "status", "qosClass") or quality_of_service(before)
    if quality_of_service(spec) != quality:
        errors.append(invalid_value("spec", quality, "Pod QOS Class may not change as a result of resizing"))
    for kind in ("initContainers", "containers"):
        wanted, found = [list(objects(each, kind)) for each in (spec, before)]
        if [text(one, "name") for _, one in wanted] != [text(one, "name") for _, one in found]:
            return [*errors, *_reordered(kind, len(wanted) != len(found))]
        for (index, container), (_, earlier) in zip(wanted, found, strict=True):
            errors += _validate_container(container, earlier, f"spec.{kind}[{index}].resources")
    return errors


def _reordered(kind: str, is_other_number: bool) -> Errors:
    if is_other_number:
        return [forbidden_field(f"spec.{kind}", f"{kind} may not be added or removed on resize")]
    return [forbidden_field(f"spec.{kind}", f"{kind} may not be renamed or reordered on resize")]


def _validate_container(new: JSONObject, old: JSONObject, path: str) -> Errors:
    errors: Errors = []
    for bound in ("limits", "requests"):
        wanted, found = mapping(new, "resources", bound), mapping(old, "resources", bound)
        if any(name in found and name not in wanted for name in _MUTABLE):
            errors.append(forbidden_field(f"{path}.{bound}", f"resource {bound} cannot be removed"))
        others = [{name: amount for name, amount in each.items() if name not in _MUTABLE} for each in (wanted, found)]
        if others[0] != others[1]:
            errors.append(forbidden_field("spec", "only cpu and memory resources are mutable"))
    return errors
