from __future__ import annotations

from collections.abc import Collection, Mapping

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.storage.store import StoredObject
from kubewright.testing.exploration.end_state import EndState, Normalizer
from kubewright.testing.exploration.findings import differences

UIDS = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(9)]


def stored(key: str, uid: str = UIDS[0], *, metadata: JSONObject | None = None, **fields: JSONValue) -> StoredObject:
    name = key.rpartition("/")[2]
    value: JSONObject = {
        "metadata": {"name": name, "uid": uid, "resourceVersion": uid[:8], **(metadata or {})},
        **fields,
    }
    return StoredObject(key, value, 1, 1)


def end(
    *entries: StoredObject,
    prepared: Collection[StoredObject] = (),
    ignore: Mapping[type[Object], Collection[str]] | None = None,
) -> EndState:
    objects = {entry.key: entry for entry in entries}
    uids = {text(entry.value, "metadata", "uid"): entry.key for entry in entries}
    return Normalizer({entry.key: entry for entry in prepared}, ignore or {}).end_state(objects, uids)


A = "/core/configmaps/default/a"


def test_what_differs_by_itself_is_left_out() -> None:
    times: JSONObject = {"creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "managedFields": []}
    others: JSONObject = {
        "creationTimestamp": "2027-01-01T00:00:00Z",
        "generation": 7,
        "managedFields": [{"manager": "x"}],
    }
    one = end(stored(A, UIDS[0], metadata={**times}, status={"observedGeneration": 1, "at": "2026-01-01T00:00:00.5Z"}))
    other = end(stored(A, UIDS[1], metadata={**others}, status={"observedGeneration": 7, "at": "2026-02-02T00:00:00Z"}))
    assert one == other


def test_the_revision_of_a_claim_that_a_volume_remembers_is_left_out() -> None:
    def volume(revision: str, name: str = "a") -> EndState:
        claim: JSONObject = {"name": name, "resourceVersion": revision}
        return end(stored("/core/persistentvolumes/v", spec={"claimRef": claim}))

    assert volume("1") == volume("2")
    assert volume("1") != volume("1", "b")


def test_what_is_not_observed_and_what_has_no_time_shows() -> None:
    current = end(stored(A, metadata={"generation": 2}, status={"observedGeneration": 2, "at": "2026-01-01T00:00:00Z"}))
    assert current != end(
        stored(A, metadata={"generation": 2}, status={"observedGeneration": 1, "at": "2026-01-01T00:00:00Z"})
    )
    assert current != end(stored(A, metadata={"generation": 2}, status={"observedGeneration": 2, "at": None}))


def test_a_uid_names_the_object_that_has_it() -> None:
    def owned(uid: str, owner: str) -> EndState:
        child = stored("/core/configmaps/default/child", UIDS[8], metadata={"ownerReferences": [{"uid": owner}]})
        return end(stored(A, uid), child)

    assert owned(UIDS[1], UIDS[1]) == owned(UIDS[2], UIDS[2])
    assert owned(UIDS[1], UIDS[1]) != owned(UIDS[1], UIDS[2])


def test_a_uid_names_its_object_although_that_is_named_by_another_uid() -> None:
    def claimed(content: str, claim: str) -> EndState:
        volume = stored(f"/core/persistentvolumes/pvc-{claim}", UIDS[8], spec={"volumeHandle": claim})
        return end(stored(f"/core/persistentvolumeclaims/default/data-{content}", claim), volume)

    assert claimed(UIDS[1], UIDS[2]) == claimed(UIDS[3], UIDS[4])
    assert list(claimed(UIDS[1], UIDS[2]).objects) == [
        "persistentvolumeclaims default/data-<uid of no object>",
        "persistentvolumes pvc-<uid of persistentvolumeclaims default/data-*>",
    ]


def test_the_addresses_of_pods_are_left_out_wherever_they_are_copied_to() -> None:
    def addressed(ip: str, node: str, revision: str) -> EndState:
        address: JSONObject = {"ip": ip, "nodeName": node, "targetRef": {"name": "web"}}
        endpoint: JSONObject = {"addresses": [ip], "nodeName": node, "targetRef": {"name": "web"}}
        return end(
            stored("/core/endpoints/default/web", UIDS[1], subsets=[{"addresses": [address]}]),
            stored("/discovery.k8s.io/endpointslices/default/web", UIDS[2], endpoints=[endpoint]),
            stored("/core/persistentvolumes/web", UIDS[3], spec={"claimRef": {"resourceVersion": revision}}),
        )

    one = addressed("10.244.0.3", "node-1", "7")
    assert one == addressed("10.244.1.9", "node-2", "8")
    assert "web" in str(one.objects["endpoints default/web"])


def test_generated_names_are_compared_by_their_prefix_and_number() -> None:
    def generated(*suffixes: str) -> EndState:
        made = [
            stored(f"/core/pods/default/web-{suffix}", UIDS[number], metadata={"generateName": "web-"})
            for number, suffix in enumerate(suffixes)
        ]
        return end(*made, stored(A, UIDS[7], data={"first": f"web-{suffixes[0]}"}))

    assert generated("abcde") == generated("fghij")
    assert list(generated("abcde", "fghij").objects) == [
        "configmaps default/a",
        "pods default/web-*",
        "pods default/web-* (2)",
    ]


def test_the_order_of_conditions_has_no_meaning() -> None:
    ready: JSONValue = {"type": "Ready"}
    synced: JSONValue = {"type": "Synced"}
    assert end(stored(A, status={"conditions": [ready, synced]})) == end(
        stored(A, status={"conditions": [synced, ready]})
    )


def test_fields_and_kinds_can_be_ignored() -> None:
    one, other = stored(A, data={"x": "1", "y": "1"}), stored(A, data={"x": "2", "y": "1"})
    assert end(one) != end(other)
    assert end(one, ignore={ConfigMap: ["data.x"]}) == end(other, ignore={ConfigMap: ["data.x"]})
    assert end(one, ignore={ConfigMap: ["data.*"]}).objects == {
        "configmaps default/a": {"metadata": {"name": "a"}, "data": {}}
    }
    assert end(one, ignore={ConfigMap: ["*"]}).objects == {}


def test_what_was_there_before_shows_only_where_it_has_changed() -> None:
    before = stored(A, data={"x": "1"})
    assert end(before, prepared=[before]).objects == {}
    assert end(stored(A, UIDS[1], data={"x": "1"}), prepared=[before]).objects == {}
    assert list(end(stored(A, data={"x": "2"}), prepared=[before]).objects) == ["configmaps default/a"]
    assert end(prepared=[before]).objects == {"configmaps default/a": "deleted"}


def test_more_events_than_tolerated_are_a_difference_and_fewer_are_not() -> None:
    def recorded(count: int) -> EndState:
        about: JSONObject = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
        event = stored(
            "/core/events/default/a.1", involvedObject=about, type="Warning", reason="Failed", series={"count": count}
        )
        return end(event)

    assert differences(recorded(1), recorded(3), None) == ""
    assert differences(recorded(1), recorded(3), 2) == ""
    assert differences(recorded(3), recorded(1), 0) == ""
    assert "+event Warning Failed of ConfigMap default/a: 3 x" in differences(recorded(1), recorded(3), 1)


def test_of_a_long_object_only_the_changes_and_its_name_are_shown() -> None:
    lines: JSONObject = {f"line-{number:03d}": "x" for number in range(200)}
    diff = differences(end(stored(A, data=lines)), end(stored(A, data={**lines, "line-100": "y"})), None)
    assert len(diff.splitlines()) < 20
    assert " configmaps default/a:" in diff
    assert "-    line-100: x\n+    line-100: y" in diff
