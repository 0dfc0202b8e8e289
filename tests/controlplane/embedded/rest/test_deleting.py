from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_body_silences_the_query(send: Send) -> None:
    await send("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})

    assert (await send("DELETE", f"{CONFIG_MAPS}/a?dryRun=All", {}))[0] == 200

    assert (await send("GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_a_dry_run_may_be_requested_in_the_body(send: Send) -> None:
    await send("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})

    assert (await send("DELETE", f"{CONFIG_MAPS}/a", {"dryRun": ["All"]}))[0] == 200

    assert (await send("GET", f"{CONFIG_MAPS}/a"))[0] == 200


async def test_a_failed_precondition_is_reported_with_the_kind(send: Send) -> None:
    _, created = await send("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    revision, uid = text(created, "metadata", "resourceVersion"), text(created, "metadata", "uid")

    status, by_revision = await send("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    _, by_uid = await send("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})

    assert status == 409
    assert by_revision["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({revision}). The object might have been modified"
    )
    assert by_uid["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match '
        f"the UID in record ({uid}). The object might have been deleted and then recreated"
    )


async def test_namespaces_report_a_failed_precondition_with_their_own_message(send: Send) -> None:
    _, created = await send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    revision = text(created, "metadata", "resourceVersion")

    _, refused = await send("DELETE", "/api/v1/namespaces/a", {"preconditions": {"resourceVersion": "1"}})

    assert refused["message"] == (
        'Operation cannot be fulfilled on namespaces "a": Precondition failed: '
        f"ResourceVersion in precondition: 1, ResourceVersion in object meta: {revision}"
    )


async def test_a_namespace_is_only_marked_as_long_as_its_spec_has_finalizers(send: Send) -> None:
    await send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})

    status, marked = await send("DELETE", "/api/v1/namespaces/a")
    _, again = await send("DELETE", "/api/v1/namespaces/a")

    assert status == 200
    assert text(marked, "status", "phase") == "Terminating"
    assert "deletionGracePeriodSeconds" not in mapping(marked, "metadata")
    assert again == marked
