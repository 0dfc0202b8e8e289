"""What a stash has of an object is put back only where it still belongs."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.api.model import Model
from kubewright.api.shape import Shape
from kubewright.webhook.stash import Restoration, stashed


class File(Model, tag="File"):
    path: str
    mode: int | None = None


class Url(Model, tag="URL"):
    url: str


class Spec(Model):
    source: File | Url


def test_a_field_of_a_union_that_became_another_member_is_not_put_back() -> None:
    stash = stashed({"source": {"type": "File", "path": "a"}}, {"source": {"type": "File", "path": "a", "mode": 1}})
    assert stash is not None

    def restored(source: JSONObject) -> JSONObject:
        return Restoration({"source": source}, stash, Shape("model", model=Spec)).content

    assert restored({"type": "File", "path": "b"}) == {"source": {"type": "File", "path": "b", "mode": 1}}
    assert restored({"type": "URL", "url": "b"}) == {"source": {"type": "URL", "url": "b"}}
