"""What is read of a file, and what is said of a wrong one."""

from __future__ import annotations

import re

import pytest

from kubewright.manifest.errors import ManifestError
from kubewright.typegen import read_definitions

GOOD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\n"


def test_definitions_are_found_among_other_manifests_and_in_lists() -> None:
    gadget = GOOD.replace("Widget", "Gadget").replace("widgets", "gadgets")
    item = gadget.strip().replace("\n", "\n    ")

    found = read_definitions(f"---\n{NAMESPACE}---\n{GOOD}---\n---\nkind: List\nitems:\n  - {item}\n", "all.yaml")

    assert [definition.name for definition in found] == ["widgets.example.com", "gadgets.example.com"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "crd.yaml: there is no CustomResourceDefinition in it: it is empty"),
        (
            f"{NAMESPACE}---\n{NAMESPACE}---\nkind: Pod\n",
            "crd.yaml: there is no CustomResourceDefinition in it: found Namespace, Pod",
        ),
        ("a: [", "crd.yaml, document 1, line 2, column 1: not YAML: did not find expected node content"),
        (
            f"{NAMESPACE}---\n[1]\n",
            "crd.yaml, document 2 is not a Kubernetes manifest: expected one with apiVersion and kind",
        ),
        (
            GOOD.replace("io/v1", "io/v1beta1"),
            "crd.yaml, document 1: apiVersion: expected apiextensions.k8s.io/v1, found apiextensions.k8s.io/v1beta1; a "
            "server that has the definition converts it: kubectl get crd NAME -o yaml",
        ),
        (
            f"{NAMESPACE}---\n{GOOD.replace('served: true', 'served: 1')}",
            "crd.yaml, document 2: spec.versions[0].served: Expected `bool`, got `int`",
        ),
        (
            GOOD.replace(", schema: {openAPIV3Schema: {type: object}}", ""),
            "crd.yaml, document 1: spec.versions[0]: Object missing required field `schema`",
        ),
        (GOOD.replace("group: example.com", ""), "crd.yaml, document 1: spec: Object missing required field `group`"),
        (re.sub(r"\[.*\]", "[]", GOOD), "crd.yaml, document 1: spec.versions: there is no version in it"),
        (
            GOOD.replace("Namespaced", "namespaced"),
            'crd.yaml, document 1: spec.scope: expected Namespaced or Cluster, found "namespaced"',
        ),
        (
            GOOD.replace("example.com", "Example.com"),
            'crd.yaml, document 1: spec.group: "Example.com" is not a DNS name in lower case',
        ),
        (
            GOOD.replace("v1,", "v.1,"),
            'crd.yaml, document 1: spec.versions[0].name: "v.1" is not a DNS name in lower case',
        ),
        (
            GOOD.replace("kind: Widget", "kind: 9 lives"),
            'crd.yaml, document 1: spec.names.kind: "9 lives" is not a kind: expected a name such as "Widget"',
        ),
        (
            GOOD.replace("{type: object}", "{type: object, properties: {spec: {type: array, items: {type: strin}}}}"),
            "crd.yaml, document 1: spec.versions[0].schema.openAPIV3Schema.properties.spec.items.type: 'strin' is none "
            "of array, boolean, integer, number, object, string",
        ),
        (
            GOOD.replace("{type: object}", "{type: object, properties: {spec: 5}}"),
            "crd.yaml, document 1: spec.versions[0].schema.openAPIV3Schema.properties.spec: expected a schema, found 5",
        ),
        (
            GOOD.replace("{type: object}", '{type: object, properties: {spec: {properties: {"a\\nb": {}}}}}'),
            "crd.yaml, document 1: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties: no field of a "
            "Python type is called 'a\\nb', with '\\n'",
        ),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_document_and_the_field(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=f"^{re.escape(message)}$"):
        read_definitions(text, "crd.yaml")
