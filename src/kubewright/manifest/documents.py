"""The manifests in a text: YAML or JSON, several documents, Lists.

Each comes with a description of its position (`crd.yaml, document 2`), for messages about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import yaml

from kubewright.api.markers import JSONValue
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.yaml_reader import compose
from kubewright.manifest.yaml_values import value_of


class Document(NamedTuple):
    """One manifest and where it stands."""

    where: str
    value: JSONValue


def documents(text: str, source: str) -> Iterator[Document]:
    """Every document of a text that comes from `source`; empty ones are left out, the items of a List are documents.

    Raises `ManifestError`, which names the source, the document, the line and the column, where the text is not YAML.
    """
    for number, value in enumerate(_values(text, source), 1):
        where = f"{source}, document {number}"
        items = value.get("items") if isinstance(value, dict) and str(value.get("kind")).endswith("List") else None
        if isinstance(items, list):
            yield from (Document(f"{where}, items[{index}]", item) for index, item in enumerate(items))
        elif value is not None:
            yield Document(where, value)


def _values(text: str, source: str) -> Iterator[JSONValue]:
    number = 1
    try:
        loader = yaml.CSafeLoader(text)
        try:
            while (node := compose(loader, text)) is not None:
                yield value_of(node)
                number += 1
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = error.problem or error.context
        raise ManifestError(f"{source}, document {number}{position}: not YAML: {problem}") from None
    except (yaml.YAMLError, ValueError):
        # The reader's errors have no line; surrogates are a ValueError.
        raise ManifestError(f"{source}: not YAML: it holds characters that YAML does not allow") from None
