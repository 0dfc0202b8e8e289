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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

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
            found |= _of_module(base.__module__).get(base.__qualname__, {})
    return found


_read: dict[str, tuple[Sequence[str], Mapping[str, Mapping[str, str]]]] = {}
"""What was read of each module, and the lines that it was read from."""


def _of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of the fields of every class in a module, by the qualified name of the class."""
    try:
        lines, _ = inspect.findsource(sys.modules[name])
    except (KeyError, OSError, TypeError):
        return {}
    # Compared by identity: the lines are a list of linecache's, which has another one when the file has changed. To
    # compare the text for each of the classes in it would take most of the time of rendering a large module.
    known = _read.get(name)
    if known is None or known[0] is not lines:
        known = _read[name] = lines, _of_source("".join(lines))
    return known[1]


def _of_source(source: str) -> Mapping[str, Mapping[str, str]]:
    """The same of a source. Which of two classes by one name is meant cannot be known: neither is described."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # the file is not what was imported
        return {}
    classes = list(_classes(module))
    counts = Counter(name for name, _ in classes)
    return {name: dict(_fields(node)) for name, node in classes if counts[name] == 1}


def _classes(module: ast.Module) -> Iterator[tuple[str, ast.ClassDef]]:
    # Only through statements, and with a list of what is left: expressions have no classes, and may be large and deep.
    left: list[tuple[str, ast.AST]] = [("", module)]
    while left:
        prefix, node = left.pop()
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            prefix = f"{prefix}{node.name}."
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            prefix = f"{prefix}{node.name}.<locals>."
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                left.append((prefix, child))


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in zip(node.body, node.body[1:], strict=False):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
