from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.bootstrap import bootstrap_objects
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.auth.users import ANONYMOUS_USER, AUTHENTICATED, UserInfo


class Bootstrap:
    """The bootstrap objects, read as the authorizer reads them."""

    def __init__(self) -> None:
        self._objects = bootstrap_objects()

    def _of(self, kind: str) -> list[JSONObject]:
        return [found for found in self._objects if found["kind"] == kind]

    def cluster_roles(self) -> list[JSONObject]:
        return self._of("ClusterRole")

    def cluster_role_bindings(self) -> list[JSONObject]:
        return self._of("ClusterRoleBinding")

    def roles(self) -> list[JSONObject]:
        return self._of("Role")

    def role_bindings(self) -> list[JSONObject]:
        return self._of("RoleBinding")


def test_each_call_returns_new_objects() -> None:
    bootstrap_objects()[0].clear()

    assert bootstrap_objects()[0]["kind"] == "ClusterRole"


def test_nothing_that_a_server_fills_in_is_in_the_objects() -> None:
    for found in bootstrap_objects():
        metadata = found["metadata"]
        assert isinstance(metadata, dict)
        assert set(metadata) <= {"name", "namespace", "labels", "annotations"}


def test_admin_holds_what_edit_holds_and_edit_what_view_holds() -> None:
    roles = {text(role, "metadata", "name"): items(role, "rules") for role in Bootstrap().cluster_roles()}

    assert roles["view"]
    assert all(rule in roles["edit"] for rule in roles["view"])
    assert all(rule in roles["admin"] for rule in roles["edit"])


def test_everybody_may_see_whether_the_server_is_alive_and_users_may_discover_it() -> None:
    authorizer = Authorizer(Bootstrap())
    user = UserInfo("jane", (AUTHENTICATED,))

    def allowed(who: UserInfo, path: str) -> bool:
        return authorizer.authorize(Attributes(who, "get", path=path, resource_request=False)).allowed

    assert allowed(ANONYMOUS_USER, "/healthz")
    assert allowed(ANONYMOUS_USER, "/version")
    assert not allowed(ANONYMOUS_USER, "/apis")
    assert allowed(user, "/apis/apps/v1")
    assert not allowed(user, "/metrics")
