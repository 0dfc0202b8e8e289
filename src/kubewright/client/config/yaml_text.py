"""YAML as Kubernetes reads it, into plain values; errors quote nothing that may be secret."""

from __future__ import annotations

import re
from typing import cast

import yaml

from kubewright.manifest.yaml_reader import compose
from kubewright.manifest.yaml_values import value_of


def parse_yaml(text: str) -> object:
    """The values of a document, None for an empty one. Raises `ValueError` that says where it is not YAML."""
    try:
        loader = yaml.CSafeLoader(text)
        try:
            node = compose(loader, text)
            if isinstance(another := loader.get_event(), yaml.DocumentStartEvent):
                where = cast("yaml.Mark | None", another.start_mark)
                raise yaml.MarkedYAMLError(
                    "expected a single document in the stream", None, "but found another document", where
                )
            return None if node is None else value_of(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ValueError(_problem(error)) from None
    except (yaml.YAMLError, ValueError):
        # The reader's errors have no line, and quote the character; surrogates are a ValueError.
        raise ValueError("it holds characters or values that YAML does not allow") from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "not YAML"
    # What the parser quotes may be part of a password (an undefined alias is `password: *…`); not what it expected.
    if not problem.startswith("did not find expected"):
        problem = re.sub(r"\s*(['\"`]).*\1", "", problem)
    where = (
        f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: " if error.problem_mark else ""
    )
    return f"{where}{error.context}, {problem}" if error.context else f"{where}{problem}"
