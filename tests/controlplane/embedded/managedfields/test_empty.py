from __future__ import annotations

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import ConfigMap, Event, Service
from kubewright.api.markers import JSONObject
from kubewright.api.networking.v1 import IPAddress
from kubewright.api.resources import Object
from kubewright.controlplane.embedded.managedfields import empty_object


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ConfigMap, {"metadata": {}}),
        (Service, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        (
            Deployment,
            {
                "metadata": {},
                "spec": {
                    "selector": {},
                    "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": None}},
                },
                "status": {},
            },
        ),
        (
            Event,
            {
                "metadata": {},
                "involvedObject": {},
                "source": {},
                "eventTime": None,
                "firstTimestamp": None,
                "lastTimestamp": None,
                "reportingComponent": "",
                "reportingInstance": "",
            },
        ),
        (IPAddress, {"metadata": {}, "spec": {}}),
    ],
)
def test_an_empty_object_shows_what_an_empty_struct_of_go_shows(kind: type[Object], expected: JSONObject) -> None:
    assert empty_object(kind) == expected
