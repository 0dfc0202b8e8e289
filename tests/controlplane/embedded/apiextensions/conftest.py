from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions.definition import default_definition, prepare_create

Define = Callable[..., JSONObject]


@pytest.fixture
def define() -> Define:
    """Makes a definition of `widgets.example.com`, filled in as the server does; keywords go to its only version."""

    def make(schema: JSONObject | None = None, *, plural: str = "widgets", **version: JSONValue) -> JSONObject:
        only: JSONObject = {"name": "v1", "served": True, "storage": True}
        only["schema"] = {"openAPIV3Schema": schema or {"type": "object"}}
        names: JSONObject = {"plural": plural, "kind": plural.removesuffix("s").capitalize()}
        definition: JSONObject = {
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [{**only, **version}]},
        }
        default_definition(definition)
        prepare_create(definition)
        return definition

    return make
