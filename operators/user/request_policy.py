"""Who may request what: an admission policy that the API server itself enforces, also while webhooks are off.

Nobody gets by a request what they could not give or take themselves. See README.md.
"""

from __future__ import annotations

from typing import Final

from kubewright import ObjectMeta
from kubewright.api import Object
from kubewright.api.admissionregistration.v1 import (
    MatchResources,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
    Variable,
)
from kubewright.api.meta import LabelSelector

from .names import CREATOR, GROUP, RBAC, ROLE_NAMES, cluster_role_of

POLICY: Final = "workspace-requests"

_ROLES = "{" + ", ".join(f"'{role}': '{cluster_role_of(role)}'" for role in ROLE_NAMES) + "}"
_VARIABLES = {
    "annotations": "object.metadata.?annotations.orValue({})",
    "old": "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})",
    "user": "request.userInfo.username",
    "is_new_operation": "request.operation == 'CREATE' && request.resource.resource == 'operationrequests'",
    "is_new_deletion": "request.operation == 'CREATE' && request.resource.resource == 'deleterequests'",
    # Named by the policy of the cluster: a role with this verb.
    "is_trusted": "authorizer.requestResource.check('escalate').allowed()",
    "bindings": f"authorizer.group('{RBAC}').resource('rolebindings').namespace(object.spec.namespace)",
    "role": f"{_ROLES}[?object.spec.?role.orValue('')].orValue('')",
}

_MAY_GIVE = f"""\
!variables.is_new_operation || variables.is_trusted || object.spec.action == 'Deprive' || (
  variables.bindings.check('create').allowed() && authorizer.group('{RBAC}').resource('clusterroles')
    .name(variables.role).namespace(object.spec.namespace).check('bind').allowed())"""

# A role that is given takes the place of another one.
_MAY_TAKE = """\
!variables.is_new_operation || variables.is_trusted || variables.bindings.check('delete').allowed()"""

_MAY_DELETE = f"""\
!variables.is_new_deletion || variables.is_trusted
|| authorizer.group('{GROUP}').resource('users').name(object.spec.user).check('delete').allowed()"""

_CREATOR_STAYS = f"""\
request.operation == 'CREATE'
  ? variables.annotations[?'{CREATOR}'].orValue(variables.user) == variables.user
  : variables.annotations[?'{CREATOR}'] == variables.old[?'{CREATOR}']"""

# With what a server would set by itself, to compare with what it has.
_MATCHES: Final = MatchResources(
    match_policy="Equivalent",
    namespace_selector=LabelSelector(),
    object_selector=LabelSelector(),
    resource_rules=[
        NamedRuleWithOperations(
            api_groups=[GROUP],
            api_versions=["*"],
            resources=["operationrequests", "deleterequests"],
            operations=["CREATE", "UPDATE"],
            scope="*",
        )
    ],
)


def request_policy() -> list[Object]:
    """The policy, and the binding that has it enforced."""
    validations = [
        Validation(
            expression=_CREATOR_STAYS,
            message=f"the annotation {CREATOR} is the user who has created the request, and stays so",
            reason="Forbidden",
        ),
        _denial(
            _MAY_GIVE,
            "' may not bind ' + variables.role + ' in the namespace ' + object.spec.namespace"
            " + ', and so not request it'",
        ),
        _denial(
            _MAY_TAKE,
            "' may not delete rolebindings in the namespace ' + object.spec.namespace + ', and so not request it'",
        ),
        _denial(_MAY_DELETE, "' may not delete the User ' + object.spec.user + ', and so not request it'"),
    ]
    variables = [Variable(name=name, expression=expression) for name, expression in _VARIABLES.items()]
    return [
        ValidatingAdmissionPolicy(
            metadata=ObjectMeta(name=POLICY),
            spec=ValidatingAdmissionPolicySpec(
                failure_policy="Fail", match_constraints=_MATCHES, variables=variables, validations=validations
            ),
        ),
        ValidatingAdmissionPolicyBinding(
            metadata=ObjectMeta(name=POLICY),
            spec=ValidatingAdmissionPolicyBindingSpec(policy_name=POLICY, validation_actions=["Deny"]),
        ),
    ]


def checks_all(policy: ValidatingAdmissionPolicy) -> bool:
    """Whether a policy refuses all that this one refuses: it may check more, and for no fewer requests."""
    spec = policy.spec
    variables = {each.name: each.expression for each in spec.variables}
    return (
        (spec.failure_policy, spec.match_constraints) == ("Fail", _MATCHES)
        and spec.param_kind is None
        and not spec.match_conditions
        and variables.items() >= _VARIABLES.items()
        and {each.expression for each in spec.validations} >= {_CREATOR_STAYS, _MAY_GIVE, _MAY_TAKE, _MAY_DELETE}
    )


def denies(binding: ValidatingAdmissionPolicyBinding) -> bool:
    """Whether a binding has the policy enforced, for all requests."""
    spec = binding.spec
    is_for_all = spec.match_resources is None and spec.param_ref is None
    return spec.policy_name == POLICY and "Deny" in spec.validation_actions and is_for_all


def _denial(expression: str, message: str) -> Validation:
    return Validation(
        expression=expression,
        message_expression=f"'User \"' + variables.user + '\"' + {message}",
        reason="Forbidden",
    )
