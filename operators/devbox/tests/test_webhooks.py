from __future__ import annotations

from collections.abc import Callable

import pytest
from operators.devbox import Devbox
from operators.devbox.tests.world import devbox
from operators.devbox.webhooks import check_devbox

from kubewright import Quantity, Review
from kubewright.api.core.v1 import ContainerPort, EmptyDirVolumeSource, EnvVar, Volume, VolumeMount


def changed(change: Callable[[Devbox], object]) -> Devbox:
    made = devbox()
    change(made)
    return made


def errors(new: Devbox, old: Devbox | None = None) -> list[str]:
    found = check_devbox.function(Review(new, old=old))
    assert isinstance(found, list)
    return [str(each) for each in found]


REFUSED: dict[str, tuple[Callable[[Devbox], object], str]] = {
    "tailnet": (
        lambda made: setattr(made.spec.network, "type", "Tailnet"),
        'spec.network.type: Unsupported value: "Tailnet": supported values: "NodePort", "SSHGate"',
    ),
    "port twice": (
        lambda made: setattr(made.spec.network, "extra_ports", [ContainerPort(container_port=22)]),
        'spec.config.ports: Duplicate value: "22/TCP"',
    ),
    "port name twice": (
        lambda made: setattr(
            made.spec.network, "extra_ports", [ContainerPort(name="devbox-ssh-port", container_port=2)]
        ),
        'spec.config.ports: Duplicate value: "devbox-ssh-port"',
    ),
    "port name that an unnamed one gets": (
        lambda made: setattr(
            made.spec.config,
            "ports",
            [ContainerPort(container_port=22), ContainerPort(name="tcp-22", container_port=2222)],
        ),
        'spec.config.ports: Duplicate value: "tcp-22"',
    ),
    "unnamed port twice": (
        lambda made: setattr(made.spec.config, "ports", [ContainerPort(container_port=22)] * 2),
        'spec.config.ports: Duplicate value: "22/TCP"',
    ),
    "port name that no Service takes": (
        lambda made: setattr(made.spec.network, "extra_ports", [ContainerPort(name="Web", container_port=80)]),
        'spec.network.extraPorts[0].name: Invalid value: "Web": must be at most 63 lower case letters',
    ),
    "port number": (
        lambda made: setattr(made.spec.config, "ports", [ContainerPort(container_port=65536)]),
        "spec.config.ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535",
    ),
    "label": (
        lambda made: setattr(made.spec.config, "labels", {"image": "dev:1"}),
        'spec.config.labels[image]: Invalid value: "dev:1": must be at most 63 letters',
    ),
    "name of a label": (
        lambda made: setattr(made.spec.config, "labels", {"a/b/c": ""}),
        'spec.config.labels: Invalid value: "a/b/c": must be a name of at most 63 letters',
    ),
    "name of an annotation": (
        lambda made: setattr(made.spec.config, "annotations", {"": "x: y"}),
        'spec.config.annotations: Invalid value: ""',
    ),
    "own variable": (
        lambda made: setattr(made.spec.config, "env", [EnvVar(name="DEVBOX_JWT_SECRET", value="x")]),
        "spec.config.env[0].name: Forbidden: DEVBOX_JWT_SECRET is set by the operator",
    ),
    "NUL": (
        lambda made: setattr(made.spec.config, "env", [EnvVar(name="A", value="a\0b")]),
        "spec.config.env[0].value",
    ),
    "no memory": (
        lambda made: setattr(made.spec, "resource", {"cpu": Quantity("1")}),
        "spec.resource.memory: Required value: a Devbox has limits of cpu and memory",
    ),
    "no cpu to speak of": (
        lambda made: setattr(made.spec, "resource", {"cpu": Quantity("0"), "memory": Quantity("1Gi")}),
        'spec.resource.cpu: Invalid value: "0": must be greater than 0',
    ),
    "no storage": (
        lambda made: setattr(made.spec, "storage_limit", Quantity("-1Gi")),
        'spec.storageLimit: Invalid value: "-1Gi": must be greater than 0',
    ),
    "own volume": (
        lambda made: setattr(made.spec.config, "volumes", [Volume(name="content", empty_dir=EmptyDirVolumeSource())]),
        "spec.config.volumes[0].name: Forbidden: content is the operator's own",
    ),
    "mounted over the content": (
        lambda made: setattr(
            made.spec.config, "volume_mounts", [VolumeMount(name="x", mount_path="/home/devbox/project/")]
        ),
        "spec.config.volumeMounts[0].mountPath: Forbidden",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_never_run_is_refused_with_the_field_that_is_wrong(case: str) -> None:
    change, expected = REFUSED[case]
    (found,) = errors(changed(change))
    assert found.startswith(expected)


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_stored_already_does_not_keep_a_devbox_from_being_stopped(case: str) -> None:
    """As of one that was made before the operator admitted Devboxes, or by an earlier one that refused less."""
    change, expected = REFUSED[case]
    old, new = changed(change), changed(change)
    new.metadata.labels["team"] = "a"
    assert errors(new, old) == []
    new.spec.state = "Stopped"
    assert errors(new, old) == []
    new.spec.config.env = [*new.spec.config.env, EnvVar(name="N", value="a\0b")]
    (found,) = errors(new, old)
    assert found.startswith(f"spec.config.env[{len(old.spec.config.env)}].value: Invalid value")
    (found,) = errors(old, devbox())
    assert found.startswith(expected)


def test_labels_and_annotations_that_a_pod_can_have_are_admitted() -> None:
    made = devbox()
    made.spec.config.labels = {"example.com/team": "a_b.C-1", "x": ""}
    made.spec.config.annotations = {"example.com/Note_1": "any: text\n"}
    assert errors(made) == []


def test_variables_that_shells_do_not_take_are_a_warning() -> None:
    review = Review(changed(lambda made: setattr(made.spec.config, "env", [EnvVar(name="a.b", value="x")])))
    assert check_devbox.function(review) == []
    assert review.warnings == ["spec.config.env: a.b is not exported to login shells, which take other names"]
