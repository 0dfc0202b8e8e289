from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.protobuf import decode_protobuf

WriteField = Callable[[int, bytes | str | int], bytes]
WriteBody = Callable[[str, str, bytes], bytes]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def refusal(body: bytes, endpoint: GroupVersionKind | None = None) -> str:
    with pytest.raises(StatusError) as raised:
        decode_protobuf(body, endpoint)
    assert (raised.value.code, raised.value.reason) == (400, "BadRequest")
    return raised.value.message


def test_an_object_begins_with_its_kind(field: WriteField, envelope: WriteBody) -> None:
    decoded = decode_protobuf(envelope("v1", "ConfigMap", field(1, field(1, "settings"))))

    assert decoded == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings"}}
    assert list(decoded)[:2] == ["kind", "apiVersion"]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("", ""), ("apps/v1", ""), ("", "Deployment"), ("a/b/c", "Deployment"), ("/", "Deployment")],
)
def test_the_endpoint_stands_in_for_what_the_body_leaves_out(api_version: str, kind: str, envelope: WriteBody) -> None:
    decoded = decode_protobuf(envelope(api_version, kind, b""), DEPLOYMENT)

    assert (decoded["apiVersion"], decoded["kind"]) == ("apps/v1", "Deployment")


def test_a_version_without_group_may_have_a_slash(envelope: WriteBody) -> None:
    assert decode_protobuf(envelope("/v1", "ConfigMap", b""))["apiVersion"] == "v1"


def test_a_kind_must_be_named_where_no_endpoint_implies_it(envelope: WriteBody) -> None:
    assert (
        refusal(envelope("v1", "", b""))
        == """Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:"v1", Kind:""}'"""
    )
    assert refusal(envelope("", "Pod", b"")).startswith("Object 'apiVersion' is missing in ")


def test_a_body_may_be_of_another_version_than_its_endpoint(envelope: WriteBody) -> None:
    """Whether that is allowed is for the endpoint to say."""
    assert decode_protobuf(envelope("apps/v1beta1", "Deployment", b""), DEPLOYMENT)["apiVersion"] == "apps/v1beta1"


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "meta.k8s.io/v1", "example.com/v9"])
def test_options_of_a_deletion_are_known_in_every_version(
    api_version: str, field: WriteField, envelope: WriteBody
) -> None:
    decoded = decode_protobuf(envelope(api_version, "DeleteOptions", field(1, 0) + field(4, "Foreground")))

    assert decoded == {
        "kind": "DeleteOptions",
        "apiVersion": api_version,
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
    }


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Nope"), ("example.com/v1", "ConfigMap"), ("apps/v1", "Pod")])
def test_an_unknown_kind_is_refused(api_version: str, kind: str, envelope: WriteBody) -> None:
    body = envelope(api_version, kind, b"")
    why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'

    assert refusal(body) == why
    assert refusal(body, CONFIG_MAP) == f'{kind} in version "v1" cannot be handled as a ConfigMap: {why}'


@pytest.mark.parametrize(
    ("body", "why", "shown"),
    [
        (b"", "empty data", "<empty>"),
        (b"k8s\0", "empty body", "6b387300"),
        (
            b"garbage",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
            "67617262616765",
        ),
        (b"k8s\0\x12\x50" + b"a" * 60, "unexpected EOF", "6b3873001250" + "61" * 24 + " ..."),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta", "6b3873000801"),
    ],
)
def test_a_body_that_is_no_protobuf_is_refused_and_shown(body: bytes, why: str, shown: str) -> None:
    assert refusal(body) == why
    assert (
        refusal(body, CONFIG_MAP) == f"the object provided is unrecognized (must be of type ConfigMap): {why} ({shown})"
    )


def test_an_object_that_is_none_of_its_kind_is_refused(field: WriteField, envelope: WriteBody) -> None:
    body = envelope("v1", "ConfigMap", field(1, 3))

    assert refusal(body) == "proto: wrong wireType = 0 for field ObjectMeta"
    assert refusal(body, CONFIG_MAP) == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta'
    )


def test_json_in_the_envelope_is_not_read(field: WriteField, envelope: WriteBody) -> None:
    """As the real server, which ignores the content type in the envelope."""
    body = envelope("v1", "ConfigMap", b'{"metadata":{"name":"a"}}') + field(4, "application/json")

    assert refusal(body) == "unexpected EOF"


def test_endless_nesting_is_refused(field: WriteField, envelope: WriteBody) -> None:
    schema = b""
    for _ in range(3000):
        schema = field(28, schema)
    version = field(4, field(1, schema))
    body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))

    assert refusal(body) == "exceeded max depth"
