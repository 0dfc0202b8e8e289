from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import msgspec
import pytest

from kubewright.api import encode, to_json
from kubewright.api.core.v1 import ConfigMap, Node
from kubewright.api.core.v1 import Namespace as NamespaceKind
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.owners import check_owners, set_controller_reference, set_owner_reference
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object


def named(kind: type[Object], name: str, namespace: str = "") -> Object:
    return kind(metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"))


def test_the_controller_of_an_object_is_set_once() -> None:
    owner, child = named(ConfigMap, "owner", "shop"), named(ConfigMap, "child", "shop")

    set_controller_reference(owner, child)
    set_controller_reference(owner, child)

    assert child.metadata.owner_references == [owner.as_owner()]


def test_an_object_has_many_owners_and_one_controller() -> None:
    child = named(ConfigMap, "child", "shop")
    one, other = named(ConfigMap, "one", "shop"), named(ConfigMap, "other", "shop")
    set_controller_reference(one, child)
    set_owner_reference(other, child)

    assert child.metadata.owner_references == [one.as_owner(), other.as_owner(controller=False)]
    with pytest.raises(ValueError, match="ConfigMap shop/child is controlled by ConfigMap one already"):
        set_controller_reference(other, child)


@pytest.mark.parametrize("set_reference", [set_controller_reference, set_owner_reference])
def test_an_owner_that_the_garbage_collector_would_not_find_is_refused(set_reference: object) -> None:
    assert callable(set_reference)
    owner = named(ConfigMap, "owner", "shop")
    elsewhere, global_ = named(ConfigMap, "child", "other"), named(ClusterRole, "child")

    with pytest.raises(ValueError, match=r'in different namespaces, .* delete the child; create the child in "shop"'):
        set_reference(owner, elsewhere)
    with pytest.raises(ValueError, match=r"the owner has a namespace and the child has none, .* delete the child"):
        set_reference(owner, global_)
    assert elsewhere.metadata.owner_references == global_.metadata.owner_references == []


def test_an_owner_without_a_namespace_owns_anything() -> None:
    node = named(Node, "node")
    for child in (named(NamespaceKind, "shop"), ConfigMap(metadata=ObjectMeta(name="a", namespace="shop"))):
        set_owner_reference(node, child)
        assert child.metadata.owner_references == [node.as_owner(controller=False)]


def test_a_reference_remembers_the_namespace_of_its_owner_and_does_not_show_it() -> None:
    made = named(ConfigMap, "owner", "shop").as_owner()
    written = OwnerReference(
        api_version="v1", kind="ConfigMap", name="owner", uid="uid-owner", controller=True, block_owner_deletion=True
    )

    assert made == written
    assert written == made
    assert [made] == [written]
    assert (made != written) is False  # which Python does not ask __eq__ about
    assert made != msgspec.structs.replace(written, name="other")
    assert repr(made) == repr(written)
    assert encode(made) == encode(written)
    assert to_json(made) == to_json(written)
    assert type(pickle.loads(pickle.dumps(made))) is OwnerReference
    assert pickle.dumps(made) == pickle.dumps(written)
    with pytest.raises(AttributeError, match="OwnerReference has no field 'controler'"):
        made.controler = True  # type: ignore[attr-defined]  # what is tested
    made.controller = None
    assert made.controller is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_child_is_not_written_away_from_its_owner(copied: Callable[[Object], Object]) -> None:
    child = named(ConfigMap, "child", "shop")
    child.metadata.owner_references = [named(ConfigMap, "owner", "shop").as_owner()]
    child = copied(child)

    check_owners(child, "shop")
    with pytest.raises(ValueError, match=r"^ConfigMap other/child cannot be owned by ConfigMap shop/owner: they are"):
        check_owners(child, "other")
