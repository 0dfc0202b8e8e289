from __future__ import annotations

from urllib.parse import parse_qsl, unquote

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import Node, Pod
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import resource_info
from kubewright.client.paths import api_root, collection_path, object_path, query, segment

POD, NODE, DEPLOYMENT = resource_info(Pod), resource_info(Node), resource_info(Deployment)


def test_the_core_group_has_a_root_of_its_own() -> None:
    assert api_root(GroupVersionKind("", "v1", "Pod")) == "/api/v1"
    assert api_root(GroupVersionKind("apps", "v1", "Deployment")) == "/apis/apps/v1"


def test_collections_are_in_one_namespace_or_in_all() -> None:
    assert collection_path(POD, "shop") == "/api/v1/namespaces/shop/pods"
    assert collection_path(POD, "") == "/api/v1/pods"
    assert collection_path(DEPLOYMENT, "shop") == "/apis/apps/v1/namespaces/shop/deployments"


def test_cluster_scoped_kinds_are_in_no_namespace() -> None:
    assert collection_path(NODE, "shop") == "/api/v1/nodes"
    assert object_path(NODE, "shop", "node-1") == "/api/v1/nodes/node-1"


def test_objects_and_their_subresources_are_below_the_collection() -> None:
    assert object_path(POD, "shop", "web-1") == "/api/v1/namespaces/shop/pods/web-1"
    assert object_path(POD, "shop", "web-1", "log") == "/api/v1/namespaces/shop/pods/web-1/log"


@given(st.text(min_size=1).filter(lambda name: name not in (".", "..")))
def test_a_name_is_one_step_of_the_path_whatever_is_in_it(name: str) -> None:
    step = segment(name)

    assert unquote(step) == name
    assert not set(step) & set("/?#& \r\n")
    assert step not in (".", "..")
    assert step.isascii()


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("a/b", "a%2Fb"),
        ("a?b", "a%3Fb"),
        ("100%", "100%25"),
        ("../secrets/x", "..%2Fsecrets%2Fx"),
        ("%2e%2e", "%252e%252e"),
        ("system:node", "system%3Anode"),
    ],
)
def test_a_name_never_changes_the_path(name: str, step: str) -> None:
    assert object_path(POD, "shop", name) == f"/api/v1/namespaces/shop/pods/{step}"
    assert object_path(POD, name, "web-1") == f"/api/v1/namespaces/{step}/pods/web-1"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f'"{name}" cannot be the name of an object'):
        object_path(POD, "shop", name)


def test_only_what_is_set_is_in_the_query() -> None:
    assert query([("a", None), ("b", "")]) == ""
    assert query([("watch", True), ("force", False), ("limit", 5), ("zero", 0)]) == (
        "?watch=true&force=false&limit=5&zero=0"
    )


@given(st.text(min_size=1))
def test_a_value_is_one_value_of_the_query_whatever_is_in_it(value: str) -> None:
    text = query([("labelSelector", value), ("limit", 1)])

    assert parse_qsl(text[1:], keep_blank_values=True) == [("labelSelector", value), ("limit", "1")]
    assert text.isascii()
    assert " " not in text
