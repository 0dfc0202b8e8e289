from kubewright.api.kinds import GroupVersionKind
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType


def resource(kind: str, group: str = "example.com", *, custom: bool = True) -> ResourceType:
    return ResourceType(
        gvk=GroupVersionKind(group, "v1", kind),
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=True,
        list_kind=f"{kind}List",
        custom=custom,
    )


POD = resource("Pod", "", custom=False)


def test_what_a_definition_adds_is_served_until_it_is_withdrawn() -> None:
    catalog = Catalog([POD])
    assert catalog.find("", "v1", "pods") is POD
    assert not catalog.serves("example.com", "v1")
    widget = resource("Widget")
    catalog.define("widgets.example.com", [widget])
    assert catalog.find("example.com", "v1", "widgets") is widget
    assert catalog.find_kind("example.com", "v1", "Widget") is widget
    assert catalog.serves("example.com", "v1")
    catalog.withdraw("widgets.example.com")
    assert catalog.find("example.com", "v1", "widgets") is None
    assert catalog.all() == [POD]


def test_every_change_is_a_new_generation() -> None:
    catalog = Catalog([POD])
    catalog.define("a", [resource("A")])
    first = catalog.generation
    catalog.withdraw("nothing")
    assert catalog.generation == first
    catalog.withdraw("a")
    assert catalog.generation > first


def test_a_definition_that_changes_replaces_what_it_served() -> None:
    catalog = Catalog([POD])
    catalog.define("a", [resource("Old")])
    catalog.define("a", [resource("New")])
    assert catalog.find_kind("example.com", "v1", "Old") is None
    assert catalog.find_kind("example.com", "v1", "New") is not None
