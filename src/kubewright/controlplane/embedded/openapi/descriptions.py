"""What Kubernetes says of its own kinds and their fields, as tools/generate_api took it from a running kube-apiserver.

It is read when the first document is made.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from functools import cache
from importlib import resources

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping


def with_descriptions(name: str, schema: JSONObject, *, only: Collection[str] = ()) -> JSONObject:
    """A schema with the descriptions that Kubernetes has for its name. The original is not changed.

    With `only`, it is one that shares no more than these fields with the named one.
    """
    found = _descriptions().get(name)
    if found is None:
        return schema
    if only:
        found = {field: found[field] for field in only}
    whole: JSONObject = {**schema, "description": found[""]} if "" in found else dict(schema)
    if "properties" in schema:
        whole["properties"] = {
            field: {**mapping(value), "description": found[field]} if field in found else value
            for field, value in mapping(schema, "properties").items()
        }
    return whole


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    content = resources.files(__package__).joinpath("descriptions.json.zlib").read_bytes()
    return msgspec.json.decode(zlib.decompress(content), type=dict[str, dict[str, str]])
