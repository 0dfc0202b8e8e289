"""From Python types to manifests.

print(crd_yaml(PodManager))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubewright.manifest.crd import crd_of, crd_yaml, definition_of
    from kubewright.manifest.errors import ManifestError
    from kubewright.manifest.schema import schema_of
    from kubewright.manifest.yaml import to_yaml

__all__ = ["ManifestError", "crd_of", "crd_yaml", "definition_of", "schema_of", "to_yaml"]

# Reading a kubeconfig needs the YAML reader of this package, and none of these.
_MODULES = {
    "ManifestError": "errors",
    "crd_of": "crd",
    "crd_yaml": "crd",
    "definition_of": "crd",
    "schema_of": "schema",
    "to_yaml": "yaml",
}

if not TYPE_CHECKING:  # a module with __getattr__ has every name, as far as type checkers know

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
