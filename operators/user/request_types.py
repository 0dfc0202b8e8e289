"""The kinds of requests: `kubectl get requests` lists both, operationrequests and deleterequests.

A request is carried out once and says what came of it. What it asks for cannot be changed.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from kubewright import Column, Meta, Model, Resource, Rule, resource
from kubewright.api import Choice
from kubewright.patterns import RequestStatus

from .names import API_VERSION, MAX_USER_LENGTH, WORKSPACE_PREFIX, RoleName

PROTECTED_USER = "admin"
"""The User that no request deletes."""

Action: TypeAlias = Literal["Grant", "Update", "Deprive"]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

# Of the schema alone: a request that has come by another way is to fail, not to be undecodable.
UserName = Annotated[str, Meta(extra_json_schema={"maxLength": MAX_USER_LENGTH, "pattern": f"^{_LABEL}$"})]
Workspace = Annotated[
    str,
    Meta(extra_json_schema={"maxLength": 63, "pattern": f"^{_LABEL}$"}),
    Rule(
        f"self.startsWith('{WORKSPACE_PREFIX}') && self != '{WORKSPACE_PREFIX}'",
        message=f"must be the namespace of a workspace, which begins with {WORKSPACE_PREFIX}",
    ),
]

IMMUTABLE = Rule(
    "self == oldSelf", message="what is requested cannot be changed: delete the request and create another"
)
ROLE_GIVEN = Rule(
    "self.action == 'Deprive' || has(self.role)", message="role is required, unless the action is Deprive"
)
NOT_PROTECTED = Rule(f"self.user != '{PROTECTED_USER}'", message=f"the User {PROTECTED_USER} cannot be deleted")

_PHASE = Column("Phase", ".status.phase")
_AGE = Column("Age", ".metadata.creationTimestamp")
_SELECTABLE = (".spec.user", ".status.phase")
_CATEGORY = "requests"


class OperationrequestSpec(Model, rules=[IMMUTABLE, ROLE_GIVEN]):
    """What a user may do in a workspace from now on."""

    user: UserName
    """The User whose role it is."""
    namespace: Workspace
    action: Choice[Action]
    """Grant and Update give the role in place of any other; Deprive takes the role, or any role if none is given."""
    role: Choice[RoleName] | None = None


@resource(
    API_VERSION,
    columns=[
        Column("Action", ".spec.action"),
        Column("Namespace", ".spec.namespace"),
        Column("User", ".spec.user"),
        Column("Role", ".spec.role"),
        _PHASE,
        _AGE,
    ],
    selectable_fields=_SELECTABLE,
    categories=[_CATEGORY],
)
class Operationrequest(Resource[OperationrequestSpec, RequestStatus]):
    """Asks for the role of a user in a workspace to be given, changed or taken. Only those in `user-system` are."""


def is_open(request: Operationrequest) -> bool:
    """Whether something may still come of a request: one that is being deleted is not begun any more."""
    return not request.status.is_finished and request.metadata.deletion_timestamp is None


class DeleterequestSpec(Model, rules=[IMMUTABLE, NOT_PROTECTED]):
    """Which User is to be deleted, and what with it."""

    user: UserName
    delete_dependents: bool = True
    """Whether the workspace is deleted, too, with everything in it."""


@resource(
    API_VERSION,
    namespaced=False,
    columns=[Column("User", ".spec.user"), _PHASE, _AGE],
    selectable_fields=_SELECTABLE,
    categories=[_CATEGORY],
)
class Deleterequest(Resource[DeleterequestSpec, RequestStatus]):
    """Asks for a User to be deleted."""
