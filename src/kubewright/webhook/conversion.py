"""Several versions of a kind: one is the hub, which objects are stored in, and the spokes are converted from and to it.

    @resource("apps.example.com/v1beta1", kind="PodManager", storage=False)
    class PodManagerV1Beta1(Resource[PodManagerV1Beta1Spec, PodManagerStatus]):
        def to_hub(self) -> PodManager:
            return PodManager(spec=PodManagerSpec(image=self.spec.image, replicas=self.spec.size), status=self.status)

        @classmethod
        def from_hub(cls, hub: PodManager) -> Self:
            return cls(spec=PodManagerV1Beta1Spec(image=hub.spec.image, size=hub.spec.replicas), status=hub.status)

    serve_webhooks(manager, converts(PodManager, PodManagerV1Beta1))

The two methods are about spec and status. Metadata is carried along; an object that is returned with metadata may have
other labels and annotations, and nothing else. What a version cannot express is not lost (see `stash`).
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Protocol, Self, TypeVar, cast

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.model import class_attribute
from kubewright.api.resources import Object, resource_info
from kubewright.webhook.conversion_step import ConversionError, ConversionStep, Converter

PATH = "/convert"

HubT = TypeVar("HubT", bound=Object)


class Spoke(Protocol[HubT]):
    """A version that objects are not stored in. It derives from `Resource` like any other."""

    def to_hub(self) -> HubT:
        """The object in the version of the hub."""

    @classmethod
    def from_hub(cls, hub: HubT) -> Self:
        """An object of the hub in this version."""


def converts(hub: type[HubT], *spokes: type[Spoke[HubT]]) -> Versions:
    """The versions of a kind, to be given to `serve_webhooks`. Mistakes in the classes are a TypeError."""
    return Versions(hub, spokes)


class Versions:
    """All versions of a kind; made by `converts`."""

    def __init__(self, hub: type[Object], spokes: tuple[type[object], ...]) -> None:
        self.hub = _checked_hub(hub)
        if not spokes:
            raise TypeError(f"converts({hub.__name__}): give its other versions, too: converts({hub.__name__}, ...)")
        self.spokes = tuple(_checked_spoke(hub, spoke) for spoke in spokes)
        self._to_hub: dict[type[Object], ConversionStep] = {}
        self._from_hub: dict[type[Object], ConversionStep] = {}
        for spoke in self.spokes:
            to_hub, from_hub = self.converters(spoke)
            self._to_hub[spoke] = ConversionStep(to_hub, from_hub, is_stored=True)
            self._from_hub[spoke] = ConversionStep(from_hub, to_hub, is_stored=False)
        self._classes: dict[str, type[Object]] = {}
        for cls in self.types:
            api_version = resource_info(cls).gvk.api_version
            if (other := self._classes.setdefault(api_version, cls)) is not cls:
                raise TypeError(
                    f"{other.__name__} and {cls.__name__} are both of {api_version}: a version has one class"
                )

    @property
    def types(self) -> tuple[type[Object], ...]:
        """The classes, the hub's first."""
        return self.hub, *self.spokes

    @property
    def group(self) -> str:
        """The API group."""
        return resource_info(self.hub).gvk.group

    @property
    def kind(self) -> str:
        """The kind."""
        return resource_info(self.hub).gvk.kind

    def converters(self, spoke: type[Object]) -> tuple[Converter, Converter]:
        """The methods of a spoke: to the hub, and from it."""

        def to_hub(obj: Object) -> object:
            return cast("Spoke[Object]", obj).to_hub()

        from_hub, name = cast("type[Spoke[Object]]", spoke).from_hub, spoke.__name__
        return (
            Converter(spoke, self.hub, to_hub, f"{name}.to_hub"),
            Converter(self.hub, spoke, from_hub, f"{name}.from_hub"),
        )

    def convert(self, obj: JSONObject, api_version: str) -> JSONObject:
        """An object in another version. Raises `ConversionError`."""
        source, target = self._version(obj.get("apiVersion")), self._version(api_version)
        if source is target:
            return obj
        if source is not self.hub:
            obj = self._to_hub[source].convert(obj)
        if target is not self.hub:
            obj = self._from_hub[target].convert(obj)
        return obj

    def _version(self, api_version: JSONValue) -> type[Object]:
        found = self._classes.get(api_version) if isinstance(api_version, str) else None
        if found is None:
            raise ConversionError(
                f"{self.kind} has no version {api_version} here, only {', '.join(self._classes)}: give its class to "
                f"converts({self.hub.__name__}, ...)"
            )
        return found


def _checked_hub(hub: object) -> type[Object]:
    if not isinstance(hub, type) or not issubclass(hub, Object):
        raise TypeError(f"converts({hub!r}, ...): expected the classes of the versions of a kind, the hub first")
    if not resource_info(hub).storage:
        raise TypeError(
            f"{hub.__name__} cannot be the hub: objects are not stored in its version; take storage=False from its "
            "@resource(...) and give it to those of the spokes"
        )
    if class_attribute(hub, "to_hub") is not None or class_attribute(hub, "from_hub") is not None:
        raise TypeError(
            f"{hub.__name__} has to_hub or from_hub, as a spoke has, and cannot be the hub, which is the first of "
            "converts(): each of the others converts itself to the hub, and from it"
        )
    return hub


def _checked_spoke(hub: type[Object], spoke: object) -> type[Object]:
    if not isinstance(spoke, type) or not issubclass(spoke, Object):
        raise TypeError(f"converts({hub.__name__}, {spoke!r}): expected the classes of the versions of a kind")
    name, info, stored = spoke.__name__, resource_info(spoke), resource_info(hub)
    for what, one, other in (
        ("group", stored.gvk.group, info.gvk.group),
        ("kind", stored.gvk.kind, info.gvk.kind),
        ("plural", stored.plural, info.plural),
    ):
        if one != other:
            raise TypeError(
                f'{name} is not a version of {hub.__name__}: its {what} is "{other}", and that of the hub "{one}"; '
                f'write @resource("{stored.gvk.group}/{info.gvk.version}", kind="{stored.gvk.kind}", storage=False)'
            )
    if info.storage:
        raise TypeError(
            f"{name} and {hub.__name__} both have storage=True: objects are stored in the version of the hub; write "
            f'@resource("{info.gvk.api_version}", ..., storage=False) for {name}'
        )
    for method, is_classmethod in (("to_hub", False), ("from_hub", True)):
        found = class_attribute(spoke, method)
        if found is None or isinstance(found, classmethod) != is_classmethod:
            raise TypeError(
                f"{name} has no {'classmethod' if is_classmethod else 'method'} {method}: a spoke has the method "
                "to_hub(self) and the classmethod from_hub(cls, hub)"
            )
        if iscoroutinefunction(getattr(spoke, method)):
            raise TypeError(f"{name}.{method} is an async def: a conversion may wait for nothing; write def {method}")
    return spoke
