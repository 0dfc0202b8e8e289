from __future__ import annotations

from kubewright import Client, Model, ObjectMeta, Resource, resource
from kubewright.testing import Install


class SpoolSpec(Model):
    metres: int = 1


@resource("definitions.testing.test/v1")
class Spool(Resource[SpoolSpec, None]):
    """Holds thread."""


@resource("definitions.testing.test/v2", kind="Spool", storage=False)
class SpoolV2(Resource[SpoolSpec, None]):
    """Holds more of it."""


async def test_a_version_is_added_to_a_kind_that_is_installed_already(
    admin: Client, namespace: str, install: Install
) -> None:
    await install(Spool)
    await install(Spool, SpoolV2)
    await install(Spool)  # leaves what there is
    await admin.create(SpoolV2(metadata=ObjectMeta(name="it", namespace=namespace), spec=SpoolSpec(metres=5)))
    assert (await admin.get(Spool, "it", namespace=namespace)).spec.metres == 5
    columns = [each.name for each in (await admin.table(SpoolV2)).column_definitions]
    assert not any(name.startswith("probe") for name in columns)
