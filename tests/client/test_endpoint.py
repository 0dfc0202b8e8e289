from __future__ import annotations

import pytest

from kubewright.api.core.v1 import Node, Pod
from kubewright.api.resources import resource_info
from kubewright.client.endpoint import Endpoint


@pytest.mark.parametrize(
    ("endpoint", "description"),
    [
        (Endpoint(resource_info(Pod), "default", "web-1"), "get Pod default/web-1"),
        (Endpoint(resource_info(Pod), "default", "web-1", "log"), "get Pod/log default/web-1"),
        (Endpoint(resource_info(Pod), "default"), "get Pod in default"),
        (Endpoint(resource_info(Pod), ""), "get Pod in all namespaces"),
        (Endpoint(resource_info(Node), "", "node-1"), "get Node node-1"),
        (Endpoint(resource_info(Node), ""), "get Node"),
    ],
)
def test_errors_describe_a_request_by_verb_kind_and_name(endpoint: Endpoint, description: str) -> None:
    assert str(endpoint.request("get")) == description
