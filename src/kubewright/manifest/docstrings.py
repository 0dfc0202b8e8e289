"""Descriptions from docstrings: that of a class describes its structure, the one below a field describes the field.

    class PodManagerSpec(Model):
        "What is wanted."

        replicas: int = 3
        "How many pods to run."

Python keeps no docstrings of fields, so they are read from the source of the class. Where there is none (an interactive
session, a program that is shipped without its source), fields are described by `Meta(description=...)` alone.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kubewright.api.model import BuiltIn, Model


def class_description(cls: type[Model]) -> str:
    """The docstring of a class, empty when it has none of its own."""
    return inspect.cleandoc(cls.__doc__ or "")


def field_descriptions(cls: type[Model]) -> Mapping[str, str]:
    """The docstrings of the fields of a class and of its bases, by their Python names."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        # Kubernetes' own structures are large modules without any.
        if issubclass(base, Model) and not issubclass(base, BuiltIn):
            found |= _of_source(_source(base.__module__)).get(base.__qualname__, {})
    return found


def _source(module: str) -> str:
    try:
        return inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return ""


@lru_cache(maxsize=64)
def _of_source(source: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of the fields of every class in a module, by the qualified name of the class."""
    try:
        return dict(_classes(ast.parse(source), ""))
    except SyntaxError:  # the file is not what was imported
        return {}


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}", dict(_fields(child))
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")
        else:
            yield from _classes(child, prefix)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in zip(node.body, node.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
