"""Authorization as kube-apiserver does it with `--authorization-mode=AlwaysAllow`: everything is allowed."""

from __future__ import annotations

from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.rbac import Authorizer, Decision, Holdings
from kubewright.controlplane.embedded.auth.rules import RBACRule
from kubewright.controlplane.embedded.auth.users import UserInfo

_ALLOWED = Decision(True)
_ALL = ("*",)


class AlwaysAllow(Authorizer):
    """Roles and bindings are stored and have no effect."""

    def authorize(self, attributes: Attributes) -> Decision:
        """Yes."""
        return _ALLOWED

    def holdings(self, user: UserInfo, namespace: str) -> Holdings:
        """All rights."""
        return Holdings((RBACRule(verbs=_ALL, groups=_ALL, resources=_ALL), RBACRule(verbs=_ALL, urls=_ALL)), ())
