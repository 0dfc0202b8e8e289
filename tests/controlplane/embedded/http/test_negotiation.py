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


def test_yaml_is_served_on_request() -> None:
    assert negotiate("application/yaml").content_type == "application/yaml"


@pytest.mark.parametrize("accept", ["image/png", PROTOBUF, "application/json;as=Table;v=v9;g=meta.k8s.io"])
def test_a_form_that_cannot_be_served_is_not_acceptable(accept: str) -> None:
    with pytest.raises(StatusError, match="only the following media types are accepted") as caught:
        negotiate(accept)
    assert caught.value.code == 406
