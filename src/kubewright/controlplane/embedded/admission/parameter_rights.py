"""Who writes a policy with parameters, or a binding that refers to some, must be allowed to read them."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.policies import GROUP, ConfigurationError, PolicyContext
from kubewright.controlplane.embedded.apimachinery.document import at, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden_field, invalid
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.rest.call import Call


def check_parameter_rights(call: Call, new: JSONObject, old: JSONObject | None, context: PolicyContext) -> None:
    """Raise the 422 for a policy or binding whose parameters the user may not read."""
    kind = call.resource.gvk.kind
    if kind.endswith("AdmissionPolicy"):
        why, field = _of_policy(call, new, old, context), "spec.paramKind"
    elif kind.endswith("AdmissionPolicyBinding"):
        why, field = _of_binding(call, new, old, context), "spec.paramRef"
    else:
        return
    if why:
        group, name = call.resource.gvk.group, text(new, "metadata", "name")
        raise invalid(kind, group, name, [forbidden_field(field, why)])


def _of_policy(call: Call, new: JSONObject, old: JSONObject | None, context: PolicyContext) -> str:
    kind = at(new, "spec", "paramKind")
    if kind is None or kind == at(old, "spec", "paramKind"):
        return ""
    group, version, plural = _resource(mapping(new, "spec"), context)
    asked = Attributes(call.user, "get", group, version, plural, namespace="*", name="*")
    if call.services.authorizer.authorize(asked).allowed:
        return ""
    what = f"(kind={text(kind, 'kind')}, apiVersion={text(kind, 'apiVersion')})"
    return f'user {_shown(call.user)} must have "get" permission on all objects of the referenced paramKind {what}'


def _of_binding(call: Call, new: JSONObject, old: JSONObject | None, context: PolicyContext) -> str:
    reference, policy_name = at(new, "spec", "paramRef"), text(new, "spec", "policyName")
    if reference is None:
        return ""
    if (reference, policy_name) == (at(old, "spec", "paramRef"), text(old, "spec", "policyName")):
        return ""
    policies = call.resource.plural.removesuffix("ybindings") + "ies"
    policy = call.services.store.get(f"{GROUP}{policies}/{policy_name}")
    spec = mapping(policy.value, "spec") if policy is not None else {}
    group, version, plural = _resource(spec, context)
    verb, namespace = "get" if text(reference, "name") else "list", text(reference, "namespace")
    asked = Attributes(call.user, verb, group, version, plural, namespace=namespace, name=text(reference, "name"))
    if call.services.authorizer.authorize(asked).allowed:
        return ""
    who = f'user {_shown(call.user)} does not have "{verb}" permission'
    if policy is None:
        purpose = f"unable to get policy {policy_name} to determine minimum required permissions"
        return f"{purpose} and {who} for all groups, versions and resources"
    return f"{who} on the object referenced by paramRef"


def _resource(spec: JSONObject, context: PolicyContext) -> tuple[str, str, str]:
    """Group, version and resource of the parameters; everything, as far as it is not known."""
    if at(spec, "paramKind") is None:
        return "*", "*", "*"
    group, _, version = text(spec, "paramKind", "apiVersion").rpartition("/")
    try:
        return group, version, context.parameter_resource(spec).plural
    except ConfigurationError:
        return group, version, "*"


def _shown(user: UserInfo) -> str:
    """A user as Go prints it."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
