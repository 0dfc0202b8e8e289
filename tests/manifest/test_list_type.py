"""What the server demands of lists that merge item by item."""

from typing import Annotated, cast

import pytest

from kubewright.api.markers import ListMap, ListSet
from kubewright.api.model import Model, ModelMeta
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.schema import schema_of


class Item(Model):
    name: str
    zone: str = "here"
    note: str | None = None
    rank: int | None
    tags: list[str] = []


def model_with(annotation: object) -> type[Model]:
    namespace: dict[str, object] = {"__annotations__": {"items": annotation}, "__module__": __name__}
    return cast(type[Model], ModelMeta("Example", (Model,), namespace))


@pytest.mark.parametrize("keys", [("name",), ("zone",), ("name", "zone")])
def test_a_key_is_required_or_has_a_default(keys: tuple[str, ...]) -> None:
    properties = schema_of(model_with(Annotated[list[Item], ListMap(*keys)]))["properties"]
    assert isinstance(properties, dict)
    rendered = properties["items"]
    assert isinstance(rendered, dict)
    assert rendered["x-kubernetes-list-type"] == "map"
    assert rendered["x-kubernetes-list-map-keys"] == list(keys)


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (Annotated[list[Item], ListMap("note")], 'the key "note" of the ListMap may be absent: make it required or'),
        (Annotated[list[Item], ListMap("rank")], 'the key "rank" of the ListMap must be a scalar that is never None'),
        (Annotated[list[Item], ListMap("tags")], 'the key "tags" of the ListMap must be a scalar that is never None'),
        (
            Annotated[list[Item], ListMap("id")],
            'the items of the ListMap have no field "id" (their JSON names: name, zone, note, rank, tags)',
        ),
        (Annotated[list[Item], ListMap()], "a ListMap needs at least one key, and each only once"),
        (Annotated[list[Item], ListMap("name", "name")], "a ListMap needs at least one key, and each only once"),
        (Annotated[list[Item | None], ListMap("name")], "the items of a ListMap cannot be None"),
        (Annotated[list[str], ListMap("name")], "the items of a ListMap are structures: use ListSet for scalars"),
        (Annotated[dict[str, Item], ListMap("name")], "ListMap is for lists"),
        (Annotated[list[Item], ListSet()], "the items of a ListSet are scalars: use ListMap"),
        (Annotated[list[str | None], ListSet()], "the items of a ListSet cannot be None"),
        (Annotated[str, ListSet()], "ListSet is for lists"),
    ],
    ids=str,
)
def test_lists_that_the_server_would_refuse_are_errors(annotation: object, complaint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        schema_of(model_with(annotation))
    assert str(caught.value).startswith(f"Example.items: {complaint}")
