import pytest

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.http.negotiation import negotiate

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "object"),
        ("*/*", "object"),
        ("application/json", "object"),
        (f"{PROTOBUF},application/json", "object"),
        (f"{TABLE},application/json", "table"),
        (f"{PARTIAL},application/json", "metadata"),
        (f"application/json;q=0.5,{TABLE};q=0.9", "table"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "object"),
    ],
)
def test_the_first_form_that_can_be_served_is_taken(accept: str, form: str) -> None:
    assert negotiate(accept).form == form


@pytest.mark.parametrize(
    ("accept", "content_type", "of_custom"),
    [
        ("application/yaml", "application/yaml", "application/yaml"),
        (f"{PROTOBUF},application/json", PROTOBUF, "application/json"),
        (f"application/json;q=0.5,{PROTOBUF}", PROTOBUF, "application/json"),
        (f"{PROTOBUF};stream=watch,application/json;stream=watch", PROTOBUF, "application/json"),
        (f"*/*,{PROTOBUF}", PROTOBUF, "application/json"),
        (f"application/*,{PROTOBUF}", PROTOBUF, "application/json"),
        (f"*/*;q=nan,{PROTOBUF}", PROTOBUF, "application/json"),
        (f"*/*;q=0.5,application/yaml;q=0.4,{PROTOBUF};q=0.1", "application/json", "application/json"),
        (f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", PROTOBUF, PROTOBUF),
        (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json", "application/json", "application/json"),
    ],
)
def test_the_first_encoding_that_can_be_served_is_taken(accept: str, content_type: str, of_custom: str) -> None:
    assert negotiate(accept).content_type == content_type
    assert negotiate(accept, is_custom=True).content_type == of_custom


@pytest.mark.parametrize(
    "accept",
    ["image/png", f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;v=v9;g=meta.k8s.io"],
)
def test_a_form_that_cannot_be_served_is_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError, match="only the following media types are accepted") as caught:
        negotiate(accept)
    assert caught.value.code == 406
