from __future__ import annotations

from math import inf

import pytest

from kubewright.api.core.v1 import Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane.controllers.pod_behaviour import PREFIX, Behaviour, annotated


def pod(**annotations: str) -> Pod:
    named = {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}
    return Pod(metadata=ObjectMeta(annotations=named | {"other": "ignored"}), spec=PodSpec(containers=[]))


def test_a_pod_without_annotations_starts_at_once_runs_for_ever_and_ends_within_a_second() -> None:
    usual = Behaviour(start=0, ready=0, run=None, exit_code=0, stop=1, waiting="")

    assert annotated(pod()) == usual
    assert annotated(pod(exit_code="0")) == usual
    assert annotated(pod(stop="0")).stop == 0


def test_every_stage_can_be_annotated() -> None:
    behaviour = annotated(
        pod(
            start="2",
            ready="0.5",
            run="0",
            exit_code="3",
            reason="OOMKilled",
            crashes="4",
            stop="1e1",
            failed_pulls="5",
            waiting="CreateContainerError",
        )
    )

    assert behaviour == Behaviour(
        start=2,
        ready=0.5,
        run=0,
        exit_code=3,
        reason="OOMKilled",
        crashes=4,
        stop=10,
        failed_pulls=5,
        waiting="CreateContainerError",
    )
    assert annotated(pod(ready="never", failed_pulls="always")) == Behaviour(ready=inf, failed_pulls=inf)


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"start": "soon"}, f'the annotation {PREFIX}start is "soon": expected seconds, such as "2.5"'),
        ({"run": "-1"}, f'the annotation {PREFIX}run is "-1": expected seconds, such as "2.5"'),
        ({"stop": "nan"}, f'the annotation {PREFIX}stop is "nan": expected seconds, such as "2.5"'),
        ({"ready": "inf"}, f'the annotation {PREFIX}ready is "inf": expected seconds, such as "2.5"'),
        ({"exit_code": "256"}, f'the annotation {PREFIX}exit-code is "256": expected a number from 0 to 255'),
        ({"crashes": "some"}, f'the annotation {PREFIX}crashes is "some": expected a number, such as "3"'),
        ({"failed_pulls": "99999"}, f'the annotation {PREFIX}failed-pulls is "99999": expected a number, such as "3"'),
        (
            {"delay": "1"},
            f"the annotation {PREFIX}delay is not known (known: start, ready, run, exit-code, reason, crashes, stop, "
            "failed-pulls, waiting)",
        ),
    ],
)
def test_an_invalid_annotation_keeps_the_pod_from_starting_with_a_reason(
    annotations: dict[str, str], message: str
) -> None:
    assert annotated(pod(**annotations)) == Behaviour(waiting="CreateContainerConfigError", message=message)
