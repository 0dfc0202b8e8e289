import pytest

from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.api.scheme import Scheme


class Spec(Model):
    size: int = 1


@resource("example.com/v1")
class Widget(Resource[Spec, None]):
    pass


def test_a_registered_type_is_found_by_its_kind() -> None:
    assert Scheme(Widget).type_for("example.com/v1", "Widget") is Widget


def test_two_schemes_know_nothing_of_each_other() -> None:
    Scheme(Widget)
    assert issubclass(Scheme().type_for("example.com/v1", "Widget"), Dynamic)


def test_kubernetes_own_kinds_are_known() -> None:
    from kubewright.api.apps.v1 import Deployment

    assert Scheme().type_for("apps/v1", "Deployment") is Deployment


@pytest.mark.parametrize(
    ("api_version", "kind"), [("apps/v1", "DeploymentSpec"), ("apps/v1", "Nothing"), ("v9", "Pod")]
)
def test_an_unknown_kind_is_dynamic(api_version: str, kind: str) -> None:
    assert issubclass(Scheme().type_for(api_version, kind), Dynamic)


def test_an_object_is_decoded_as_the_kind_it_names() -> None:
    decoded = Scheme(Widget).decode(b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"size":2}}')
    assert isinstance(decoded, Widget)
    assert decoded.spec.size == 2


@pytest.mark.parametrize("raw", [b"{}", b'{"kind":"Pod"}', b"nonsense", b'{"apiVersion":"/","kind":"Pod"}'])
def test_json_without_a_kind_is_no_object(raw: bytes) -> None:
    with pytest.raises(DecodeError, match="not a Kubernetes object"):
        Scheme().decode(raw)


def test_a_kind_has_one_type() -> None:
    @resource("example.com/v1", kind="Widget")
    class Other(Resource[Spec, None]):
        pass

    with pytest.raises(ValueError, match=r"example.com/v1 Widget is registered as Widget already, not as .*Other"):
        Scheme(Widget, Other)
