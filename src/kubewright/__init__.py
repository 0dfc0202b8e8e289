"""kubewright: Kubernetes operators in Python.

The front door: the names most programs need. Everything is imported when it is first used, so that `import kubewright`
costs next to nothing. Kubernetes' own kinds are in `kubewright.api.<group>.<version>`.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import TYPE_CHECKING

from kubewright.version import __version__ as __version__

if TYPE_CHECKING:
    from msgspec import Meta as Meta
    from msgspec import field as field

    from kubewright.api import Column as Column
    from kubewright.api import Condition as Condition
    from kubewright.api import Dynamic as Dynamic
    from kubewright.api import Immutable as Immutable
    from kubewright.api import IntOrString as IntOrString
    from kubewright.api import KubernetesError as KubernetesError
    from kubewright.api import Model as Model
    from kubewright.api import ObjectKey as ObjectKey
    from kubewright.api import ObjectMeta as ObjectMeta
    from kubewright.api import OwnerReference as OwnerReference
    from kubewright.api import Quantity as Quantity
    from kubewright.api import Resource as Resource
    from kubewright.api import Rule as Rule
    from kubewright.api import Scale as Scale
    from kubewright.api import Time as Time
    from kubewright.api import now as now
    from kubewright.api import partial as partial
    from kubewright.api import resource as resource
    from kubewright.api import set_controller_reference as set_controller_reference
    from kubewright.cache import CachedClient as CachedClient
    from kubewright.client import Client as Client
    from kubewright.client import Config as Config
    from kubewright.client.errors import AlreadyExists as AlreadyExists
    from kubewright.client.errors import Conflict as Conflict
    from kubewright.client.errors import Forbidden as Forbidden
    from kubewright.client.errors import Invalid as Invalid
    from kubewright.client.errors import NotFound as NotFound
    from kubewright.client.wait import Field as Field
    from kubewright.client.wait import condition as condition
    from kubewright.client.wait import deleted as deleted
    from kubewright.client.wait import ready as ready
    from kubewright.controller import Request as Request
    from kubewright.controller import Result as Result
    from kubewright.controller import TerminalError as TerminalError
    from kubewright.controller import annotations_changed as annotations_changed
    from kubewright.controller import controller_for as controller_for
    from kubewright.controller import generation_changed as generation_changed
    from kubewright.controller import labels_changed as labels_changed
    from kubewright.controller import mapped as mapped
    from kubewright.controller import predicate as predicate
    from kubewright.controlplane import ControlPlane as ControlPlane
    from kubewright.manager import Manager as Manager
    from kubewright.manager import Permission as Permission
    from kubewright.manager import Recorder as Recorder
    from kubewright.manager import run as run
    from kubewright.manifest.crd import definition_of as definition_of
    from kubewright.webhook import Denied as Denied
    from kubewright.webhook import FieldCause as FieldCause
    from kubewright.webhook import Review as Review
    from kubewright.webhook import converts as converts
    from kubewright.webhook import defaults as defaults
    from kubewright.webhook import serve_webhooks as serve_webhooks
    from kubewright.webhook import validates as validates

_HOMES = {
    "msgspec": ("Meta", "field"),
    "kubewright.api": (
        "Column",
        "Condition",
        "Dynamic",
        "Immutable",
        "IntOrString",
        "KubernetesError",
        "Model",
        "ObjectKey",
        "ObjectMeta",
        "OwnerReference",
        "Quantity",
        "Resource",
        "Rule",
        "Scale",
        "Time",
        "now",
        "partial",
        "resource",
        "set_controller_reference",
    ),
    "kubewright.cache": ("CachedClient",),
    "kubewright.client": ("Client", "Config"),
    "kubewright.client.errors": ("AlreadyExists", "Conflict", "Forbidden", "Invalid", "NotFound"),
    "kubewright.client.wait": ("Field", "condition", "deleted", "ready"),
    "kubewright.controller": (
        "Request",
        "Result",
        "TerminalError",
        "annotations_changed",
        "controller_for",
        "generation_changed",
        "labels_changed",
        "mapped",
        "predicate",
    ),
    "kubewright.controlplane": ("ControlPlane",),
    "kubewright.manager": ("Manager", "Permission", "Recorder", "run"),
    "kubewright.manifest.crd": ("definition_of",),
    "kubewright.webhook": ("Denied", "FieldCause", "Review", "converts", "defaults", "serve_webhooks", "validates"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])


if not TYPE_CHECKING:  # a module with __getattr__ has every name, as far as type checkers know

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            if name[:1].isupper():
                from kubewright.elsewhere import missing_name

                raise missing_name(name, sys._getframe(1))
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # What an import makes stays: the collector would search it over and over, for a seventh of the time it takes.
        collects = gc.isenabled()
        gc.disable()
        try:
            value: object = getattr(importlib.import_module(home), name)
        finally:
            if collects:
                gc.enable()
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
