"""Labels and annotations of the config, on pods that run."""

from __future__ import annotations

from operators.devbox import Config
from operators.devbox.names import CONFIG_KEYS, SPEC_HASH, labels_of
from operators.devbox.options import Options
from operators.devbox.pod_metadata import follow, pod_metadata
from operators.devbox.tests.world import devbox, running_world

from kubewright import ObjectMeta
from kubewright.api.core.v1 import Pod
from kubewright.client import MergePatch
from kubewright.patterns import get_condition
from kubewright.testing import count_requests, settled, virtual


def wanted(labels: dict[str, str], annotations: dict[str, str], spec_hash: str = "new") -> ObjectMeta:
    made = devbox()
    made.spec.config.labels, made.spec.config.annotations = labels, annotations
    return pod_metadata(made, Options(), spec_hash)


@virtual
async def test_a_change_of_the_labels_and_annotations_of_the_config_does_not_arrive_at_the_pod() -> None:
    async with running_world() as world:
        made = devbox()
        made.spec.config.labels, made.spec.config.annotations = {"team": "a", "old": "x"}, {"note": "a", "gone": "x"}
        await world.create(made)
        await world.reaches("Running")
        before = await world.running_pod()
        others = {"metadata": {"labels": {"theirs": "x"}, "annotations": {"theirs": "x"}}}
        await world.admin.patch(Pod, "it", MergePatch(others))
        config = Config(labels={"team": "b", "new": "y"}, annotations={"note": "b"})
        await world.change(lambda found: setattr(found.spec, "config", config))
        ended = await world.at_rest()
        pod = await world.running_pod()
        assert pod.metadata.uid == before.metadata.uid
        assert pod.metadata.labels == {"team": "b", "new": "y", "theirs": "x", **labels_of("it")}
        fixed = before.metadata.annotations.keys() - {"note", "gone", CONFIG_KEYS}
        kept = {name: before.metadata.annotations[name] for name in fixed}
        assert {**pod.metadata.annotations, CONFIG_KEYS: ""} == {"note": "b", "theirs": "x", **kept, CONFIG_KEYS: ""}
        # No restart is needed for them.
        assert get_condition(ended, "PodUpToDate") is None
        with count_requests(world.own) as requests:
            await settled(world.manager, quiet=60, timeout=600)
        assert requests.attempts == []


def test_what_a_pod_was_made_from_stays() -> None:
    found = wanted({}, {}, spec_hash="old")
    found.annotations[CONFIG_KEYS] = f'{{"annotations": ["{SPEC_HASH}"], "labels": ["app.kubernetes.io/name"]}}'
    follow(found, wanted({}, {}))
    assert (found.annotations[SPEC_HASH], found.labels) == ("old", labels_of("it"))


def test_what_another_client_has_written_over_our_note_is_no_obstacle() -> None:
    for note in ("", "no json", "[]", '{"labels": 1}'):
        found = wanted({"team": "a"}, {})
        found.annotations[CONFIG_KEYS] = note
        follow(found, wanted({"team": "b"}, {}))
        assert found.labels == {"team": "b", **labels_of("it")}
        assert found.annotations[CONFIG_KEYS] == '{"labels":["team"],"annotations":[]}'
