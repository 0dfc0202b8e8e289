"""Eviction: deletes a pod if its disruption budget allows, and records the reason in its status."""

from __future__ import annotations

from dataclasses import replace

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.policy.v1 import Eviction
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request, forbidden
from kubewright.controlplane.embedded.builtins.label_selectors import matches
from kubewright.controlplane.embedded.builtins.registry import body_resource
from kubewright.controlplane.embedded.builtins.values import number
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.rest.bodies import read_object
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.deleting import Options, check_preconditions, delete, options_of
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.storage.store import StoredObject

_EVICTION = replace(body_resource(Eviction), namespaced=True)
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_AFTER = 10
_MAX_DISRUPTED = 2000


def evict(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Delete a pod, unless a disruption budget forbids it for now."""
    body = read_object(replace(call, resource=_EVICTION), request)
    _EVICTION.strategy.default(body)
    if text(body, "metadata", "name") != call.target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = options_of(call, mapping(body, "deleteOptions") or None)
    # Either of the two may request a dry run.
    options = replace(options, dry_run=options.dry_run or call.query.dry_run)
    inside(body, "metadata").setdefault("namespace", call.target.namespace)
    call.services.admission.check(call, body, None, "CREATE")
    entry = get(call)
    if not _needs_no_budget(entry.value):
        _charge_budget(call, entry.value, options)
    if not options.dry_run:
        options = _with_status(call, entry, options)
    delete(call, options)
    return json_response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _needs_no_budget(pod: JSONObject) -> bool:
    """Pods that do not run, or are terminating, need no budget."""
    phase = text(pod, "status", "phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(text(pod, "metadata", "deletionTimestamp"))


def _charge_budget(call: Call, pod: JSONObject, options: Options) -> None:
    """Count the disruption, or raise StatusError."""
    budgets = [entry for entry in _budgets(call) if _covers(entry.value, pod)]
    if len(budgets) > 1:
        raise StatusError(
            500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not budgets:
        return
    budget = budgets[0].value
    status = mapping(budget, "status")
    healthy, desired = number(status.get("currentHealthy")), number(status.get("desiredHealthy"))
    if not _is_ready(pod) and (
        text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= desired > 0
    ):
        return
    _check_budget(budget)
    if not options.dry_run:
        new = copied_object(budget)
        changed = inside(new, "status")
        changed["disruptionsAllowed"] = number(status.get("disruptionsAllowed")) - 1
        inside(changed, "disruptedPods")[call.target.name] = call.services.now()
        call.services.store.update(budgets[0].key, new, expected=budgets[0].revision)


def _budgets(call: Call) -> list[StoredObject]:
    budgets = call.services.catalog.find("policy", "v1", "poddisruptionbudgets")
    return [] if budgets is None else call.services.store.range(f"{budgets.prefix}{call.target.namespace}/").entries


def _covers(budget: JSONObject, pod: JSONObject) -> bool:
    """Without a selector a budget covers nothing, with an empty one everything."""
    selector = mapping(budget, "spec").get("selector")
    return selector is not None and matches(selector, mapping(pod, "metadata", "labels"))


def _is_ready(pod: JSONObject) -> bool:
    return any(
        text(condition, "type") == "Ready" and text(condition, "status") == "True"
        for condition in items(pod, "status", "conditions")
    )


def _check_budget(budget: JSONObject) -> None:
    name, status = text(budget, "metadata", "name"), mapping(budget, "status")
    if number(status.get("observedGeneration")) < number(mapping(budget, "metadata").get("generation")):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _RETRY_AFTER)
    allowed = number(status.get("disruptionsAllowed"))
    if allowed < 0:
        raise forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    if len(mapping(status, "disruptedPods")) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget", "policy", name, why)
    if allowed == 0:
        raise _refused(_why_not(name, status))


def _why_not(name: str, status: JSONObject) -> str:
    conditions = [mapping(one) for one in items(status, "conditions") if text(one, "type") == "DisruptionAllowed"]
    condition = next((one for one in conditions if text(one, "status") == "False" and text(one, "message")), None)
    healthy, desired = number(status.get("currentHealthy")), number(status.get("desiredHealthy"))
    now = f"The disruption budget {name} does not allow evicting pods currently"
    if condition is not None and text(condition, "reason") == "SyncFailed":
        return f"{now} because it failed sync: {text(condition, 'message')}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return now if condition is None else f"{now} ({text(condition, 'reason')}): {text(condition, 'message')}"


def _refused(why: str, retry_after: int = 0) -> StatusError:
    causes: list[JSONValue] = [{"reason": "DisruptionBudget", "message": why}]
    details: JSONObject = {"causes": causes}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(429, "TooManyRequests", _REFUSED, details=details)


def _with_status(call: Call, entry: StoredObject, options: Options) -> Options:
    """Write the reason of the disruption into the pod. Returns the options for the deletion of the present object."""
    check_preconditions(call, options, entry)
    new = copied_object(entry.value)
    status = inside(new, "status")
    conditions = items(status, "conditions")
    before = next((mapping(one) for one in conditions if text(one, "type") == "DisruptionTarget"), {})
    target: JSONObject = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": text(before, "lastTransitionTime") or call.services.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    if before and text(before, "reason") == text(target, "reason"):
        return options
    status["conditions"] = [*(one for one in conditions if text(one, "type") != "DisruptionTarget"), target]
    written = call.services.store.update(entry.key, new, expected=entry.revision)
    return replace(options, resource_version=str(written.revision)) if options.resource_version else options
