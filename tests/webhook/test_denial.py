"""Denials are worded as the API server words its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kubewright.api import Object
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Pod, Service
from kubewright.api.markers import JSONInput
from kubewright.client import Client
from kubewright.client.errors import Invalid
from kubewright.webhook import FieldCause
from kubewright.webhook.denial import InvalidObject

PORT = "must be between 1 and 65535, inclusive"
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


async def test_causes_and_messages_are_those_of_the_server(admin: Client, namespace: str) -> None:
    async def refused(kind: type[Object], content: Mapping[str, JSONInput], errors: Sequence[FieldCause]) -> None:
        with pytest.raises(Invalid) as invalid:
            await admin.in_namespace(namespace).create(from_json(kind, {"metadata": {"name": "it"}, **content}))
        ours, servers = InvalidObject("", kind.__name__, "it", errors).status, invalid.value.status
        assert ours.message == servers.message
        assert (ours.code, ours.reason, ours.details) == (servers.code, servers.reason, servers.details)

    await refused(
        Service,
        {"spec": {"ports": [{"port": 0, "targetPort": 80}, {"port": 80, "name": "a", "protocol": "QUIC"}]}},
        [
            FieldCause.required("spec.ports[0].name"),
            FieldCause.invalid("spec.ports[0].port", 0, PORT),
            FieldCause.not_supported("spec.ports[1].protocol", "QUIC", ["SCTP", "TCP", "UDP"]),
        ],
    )
    await refused(ConfigMap, {"data": {"no spaces": ""}}, [FieldCause.invalid("data[no spaces]", "no spaces", KEY)])
    container: dict[str, JSONInput] = {"name": "a", "image": "a", "terminationMessagePolicy": "File"}
    container |= {"imagePullPolicy": "Always"}
    mounting: dict[str, JSONInput] = {**container, "volumeMounts": [{"name": "none", "mountPath": "/none"}]}
    await refused(
        Pod,
        {"spec": {"containers": [mounting, container]}},
        [
            FieldCause.not_found("spec.containers[0].volumeMounts[0].name", "none"),
            FieldCause.duplicate("spec.containers[1].name", "a"),
        ],
    )


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (FieldCause.invalid("a", None, "no"), "Invalid value: null: no"),
        (FieldCause.invalid("a", {"b": [1.5, True]}, "no"), 'Invalid value: {"b":[1.5,true]}: no'),
        (FieldCause.required("a", "say it"), "Required value: say it"),
        (FieldCause.too_long("a", 1), "Too long: may not be more than 1 byte"),
        (FieldCause.too_long("a", 63), "Too long: may not be more than 63 bytes"),
        (FieldCause.too_many("a", 2, 1), "Too many: 2: must have at most 1 item"),
        (FieldCause.too_many("a", 9, 5), "Too many: 9: must have at most 5 items"),
    ],
)
def test_a_cause_is_worded_as_apimachinery_words_it(cause: FieldCause, message: str) -> None:
    assert (cause.path, cause.message) == ("a", message)
