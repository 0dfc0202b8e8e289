"""Manifests as text."""

from __future__ import annotations

import re
import sys
from typing import Final

import yaml

from kubewright.api.markers import JSONValue

# What YAML 1.1 and the readers of other languages take for numbers and booleans, and PyYAML does not: 1e3, 0o17, y.
_AMBIGUOUS: Final = re.compile(r"[-+.]?\d.*|[yYnN]|[~=]")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # PyYAML's signature
        """Anchors save space, but are hard to read."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if not text.replace("\n", "").isprintable():
        return '"'  # the only style with escapes: all others change rare line breaks
    if "\n" in text:
        return "|"
    return "'" if _AMBIGUOUS.fullmatch(text) else None


_Dumper.add_representer(str, _text)


def to_yaml(document: JSONValue) -> str:
    """Block-style YAML, names sorted as kubectl does. Equal documents give the same bytes."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=sys.maxsize)
