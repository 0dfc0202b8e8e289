"""Rows of policies: roles, certificates, admission, quotas and priorities."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.tables.durations import human_duration
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    boolean,
    integer,
    name_of,
    number,
    wide,
)
from kubewright.controlplane.embedded.tables.selectors import selector_in_go

_NONE = "<none>"
_UNSET = "<unset>"


def _role_binding(obj: JSONObject, now: float) -> Cells:
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in items(obj, "subjects"):
        kind, name = text(subject, "kind"), text(subject, "name")
        if kind in subjects:
            subjects[kind].append(f"{text(subject, 'namespace')}/{name}" if kind == "ServiceAccount" else name)
    return [
        name_of(obj),
        f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}",
        age_of(obj, now),
        *(", ".join(names) for names in subjects.values()),
    ]


def _signing_request(obj: JSONObject, now: float) -> Cells:
    expiration = at(obj, "spec", "expirationSeconds")
    return [
        name_of(obj),
        age_of(obj, now),
        text(obj, "spec", "signerName") or _NONE,
        text(obj, "spec", "username"),
        human_duration(expiration) if isinstance(expiration, int) else _NONE,
        _signing_status(obj),
    ]


def _signing_status(obj: JSONObject) -> str:
    types = {text(condition, "type") for condition in items(obj, "status", "conditions")}
    status = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        status += ",Failed"
    return f"{status},Issued" if text(obj, "status", "certificate") else status


def _webhooks(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), len(items(obj, "webhooks")), age_of(obj, now)]


def _admission_policy(rules: str) -> Printer:
    def cells(obj: JSONObject, now: float) -> Cells:
        kind = at(obj, "spec", "paramKind")
        shown = _UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"
        return [name_of(obj), len(items(obj, "spec", rules)), shown, age_of(obj, now)]

    return Printer((NAME, integer(rules.capitalize()), PrinterColumn("ParamKind"), AGE), cells)


def _policy_binding(obj: JSONObject, now: float) -> Cells:
    parameters, shown = mapping(obj, "spec", "paramRef"), _UNSET
    name = text(parameters, "name")
    if name:
        shown = f"{text(parameters, 'namespace') or '*'}/{name}"
    elif "selector" in parameters:
        shown = selector_in_go(parameters["selector"])
    return [name_of(obj), text(obj, "spec", "policyName"), shown, age_of(obj, now)]


def _quota(obj: JSONObject, now: float) -> Cells:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age_of(obj, now)]


def _priority_class(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        number(obj, "value"),
        at(obj, "globalDefault") is True,
        age_of(obj, now),
        text(obj, "preemptionPolicy"),
    ]


def _flow_schema(obj: JSONObject, now: float) -> Cells:
    conditions = items(obj, "status", "conditions")
    dangling = next((condition for condition in conditions if text(condition, "type") == "Dangling"), None)
    return [
        name_of(obj),
        text(obj, "spec", "priorityLevelConfiguration", "name"),
        number(obj, "spec", "matchingPrecedence"),
        text(obj, "spec", "distinguisherMethod", "type") or _NONE,
        age_of(obj, now),
        "?" if dangling is None else text(dangling, "status"),
    ]


def _priority_level(obj: JSONObject, now: float) -> Cells:
    limited, queuing = at(obj, "spec", "limited"), at(obj, "spec", "limited", "limitResponse", "queuing")
    queues: Cells = [_NONE, _NONE, _NONE]
    if queuing is not None:
        queues = [number(queuing, name) for name in ("queues", "handSize", "queueLengthLimit")]
    shares = _NONE if limited is None else number(limited, "nominalConcurrencyShares")
    return [name_of(obj), text(obj, "spec", "type"), shares, *queues, age_of(obj, now)]


_BINDING = Printer(
    (NAME, PrinterColumn("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")),
    _role_binding,
)
_WEBHOOKS = Printer((NAME, integer("Webhooks"), AGE), _webhooks)
_POLICY_BINDING = Printer((NAME, PrinterColumn("PolicyName"), PrinterColumn("ParamRef"), AGE), _policy_binding)

PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "resourcequotas"): Printer((NAME, PrinterColumn("Request"), PrinterColumn("Limit"), AGE), _quota),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _admission_policy("validations"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _admission_policy("mutations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _POLICY_BINDING,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _POLICY_BINDING,
    ("certificates.k8s.io", "certificatesigningrequests"): Printer(
        (
            NAME,
            AGE,
            PrinterColumn("SignerName"),
            PrinterColumn("Requestor"),
            PrinterColumn("RequestedDuration"),
            PrinterColumn("Condition"),
        ),
        _signing_request,
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Printer(
        (
            NAME,
            PrinterColumn("PriorityLevel"),
            PrinterColumn("MatchingPrecedence"),
            PrinterColumn("DistinguisherMethod"),
            AGE,
            PrinterColumn("MissingPL"),
        ),
        _flow_schema,
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Printer(
        (
            NAME,
            PrinterColumn("Type"),
            PrinterColumn("NominalConcurrencyShares"),
            PrinterColumn("Queues"),
            PrinterColumn("HandSize"),
            PrinterColumn("QueueLengthLimit"),
            AGE,
        ),
        _priority_level,
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("scheduling.k8s.io", "priorityclasses"): Printer(
        (NAME, integer("Value"), boolean("Global-Default"), AGE, PrinterColumn("PreemptionPolicy")), _priority_class
    ),
}
