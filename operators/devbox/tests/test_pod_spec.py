from __future__ import annotations

from datetime import timedelta

import pytest
from operators.devbox import Devbox, InMemoryCommitter, InMemoryRegistry, Options
from operators.devbox.names import CONFIG_KEYS, CONTENT_ID, RUNTIME_HANDLER, SPEC_HASH, STORAGE_LIMIT
from operators.devbox.pod_spec import pod_of
from operators.devbox.resources import ordinary_resources, resources
from operators.devbox.tests.world import devbox
from operators.devbox.types import CommitRecord

from kubewright import KubernetesError, Quantity
from kubewright.api.core.v1 import Pod, Toleration

COMMITTER = InMemoryCommitter(InMemoryRegistry())


@pytest.fixture
def made() -> Devbox:
    made = devbox()
    made.status.content_id = "content"
    made.status.commit_records["content"] = CommitRecord(base_image="dev:1")
    return made


def pod(made: Devbox, options: Options | None = None) -> Pod:
    return pod_of(made, COMMITTER, options or Options())


def test_the_pod_of_a_devbox(made: Devbox) -> None:
    found = pod(made)
    spec, (container,) = found.spec, found.spec.containers
    assert (found.metadata.name, spec.hostname, container.name, container.image) == ("it", "it", "it", "dev:1")
    assert (spec.restart_policy, spec.termination_grace_period_seconds) == ("Never", 3)
    assert (spec.automount_service_account_token, container.ports) == (False, [])
    mounts = {mount.mount_path: (mount.name, mount.sub_path) for mount in container.volume_mounts}
    assert mounts == {
        "/home/devbox/project": ("content", "project"),
        "/usr/start/.ssh": ("devbox-ssh-keys", None),
        "/etc/profile.d/env-profile.sh": ("devbox-env-profile", "env-profile.sh"),
    }
    assert found.metadata.annotations[CONTENT_ID] == "content"
    assert found.metadata.annotations[STORAGE_LIMIT] == "10Gi"
    assert RUNTIME_HANDLER not in found.metadata.annotations


def test_what_the_user_gives_is_passed_on_and_cannot_take_the_pod_from_its_devbox(made: Devbox) -> None:
    config = made.spec.config
    config.labels = {"team": "a", "app.kubernetes.io/name": "other"}
    config.annotations = {"note": "x", CONTENT_ID: "other"}
    config.command, config.args, config.working_dir = ["sleep"], ["inf"], "/work"
    made.spec.runtime_class_name, made.spec.node_selector = "kata", {"disk": "ssd"}
    made.spec.tolerations = [Toleration(key="devbox", operator="Exists")]
    made.spec.storage_limit = Quantity("20Gi")
    found = pod(made, Options(runtime_handler="devbox-runc"))
    assert found.metadata.labels == {
        "team": "a",
        "app.kubernetes.io/name": "it",
        "app.kubernetes.io/managed-by": "sealos",
        "app.kubernetes.io/part-of": "devbox",
    }
    annotations = dict(found.metadata.annotations)
    del annotations[SPEC_HASH]
    assert annotations == {
        "note": "x",
        CONFIG_KEYS: '{"labels":["team"],"annotations":["note"]}',
        CONTENT_ID: "content",
        STORAGE_LIMIT: "20Gi",
        RUNTIME_HANDLER: "devbox-runc",
    }
    container = found.spec.containers[0]
    assert (container.command, container.args, container.working_dir) == (["sleep"], ["inf"], "/work")
    assert (found.spec.runtime_class_name, found.spec.node_selector) == ("kata", {"disk": "ssd"})
    assert found.spec.init_containers[0].command[-2:] == ["/devbox-content", "/work"]


@pytest.mark.parametrize(
    ("given", "limits", "requests"),
    [
        (
            {"cpu": "2", "memory": "4Gi"},
            {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi"},
            {"cpu": "200m", "memory": "429496729", "ephemeral-storage": "500Mi"},
        ),
        (
            {"cpu": "5m", "memory": "1M", "ephemeral-storage": "90Gi", "nvidia.com/gpu": "1"},
            {"cpu": "5m", "memory": "1M", "ephemeral-storage": "50Gi", "nvidia.com/gpu": "1"},
            {"cpu": "1m", "memory": "100k", "ephemeral-storage": "500Mi"},
        ),
        (
            {"memory": "1Gi", "ephemeral-storage": "100Mi"},
            {"memory": "1Gi", "ephemeral-storage": "100Mi"},
            {"memory": "107374182", "ephemeral-storage": "100Mi"},
        ),
    ],
)
def test_limits_are_the_resources_and_requests_a_share_of_them(
    made: Devbox, given: dict[str, str], limits: dict[str, str], requests: dict[str, str]
) -> None:
    made.spec.resource = {name: Quantity(amount) for name, amount in given.items()}
    found = resources(made, Options())
    assert found.limits == {name: Quantity(amount) for name, amount in limits.items()}
    assert found.requests == {name: Quantity(amount) for name, amount in requests.items()}
    limits.pop("nvidia.com/gpu", None)
    found = ordinary_resources(made, Options())
    assert found.limits == {name: Quantity(amount) for name, amount in limits.items()}


def test_a_pod_of_another_spec_has_another_hash(made: Devbox) -> None:
    before = pod(made).metadata.annotations[SPEC_HASH]
    made.spec.config.labels = {"team": "b"}
    assert pod(made).metadata.annotations[SPEC_HASH] == before  # labels need no restart
    made.spec.config.args = ["other"]
    assert pod(made).metadata.annotations[SPEC_HASH] != before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (Options(storage_size="lots"), "--storage-size: 'lots' is not a quantity"),
        (Options(storage_size="-5Gi"), "--storage-size is -5Gi: expected more than 0"),
        (Options(max_ephemeral_storage=""), "--max-ephemeral-storage"),
        (Options(commit_retry=timedelta(0)), "--commit-retry is 0:00:00: expected at least 1s"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: Options, problem: str) -> None:
    with pytest.raises(KubernetesError, match=problem):
        options.check()
