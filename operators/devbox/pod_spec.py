"""What the pod of a Devbox looks like."""

from __future__ import annotations

from hashlib import sha256

from kubewright.api.codec import encode
from kubewright.api.core.v1 import (
    Container,
    EnvVar,
    EnvVarSource,
    KeyToPath,
    Pod,
    PodSpec,
    SecretKeySelector,
    SecretVolumeSource,
    Volume,
    VolumeMount,
)

from .committer import Committer
from .content import PROJECT, VOLUME, seeding, volume
from .names import (
    AUTHORIZED_KEYS,
    ENV_PROFILE,
    JWT_SECRET,
    JWT_VARIABLE,
    PUBLIC_KEY,
    claim_of,
)
from .options import Options
from .pod_metadata import pod_metadata
from .resources import ordinary_resources, resources
from .types import Devbox

_GRACE = 3
_KEYS, _PROFILE = "devbox-ssh-keys", "devbox-env-profile"


def pod_of(devbox: Devbox, committer: Committer, options: Options) -> Pod:
    """The pod of the present content, which begins from the base of that."""
    spec, name = devbox.spec, devbox.metadata.name
    image = devbox.status.record.base_image
    pod_spec = PodSpec(
        restart_policy="Never",
        hostname=name,
        termination_grace_period_seconds=_GRACE,
        automount_service_account_token=False,
        enable_service_links=False,
        runtime_class_name=spec.runtime_class_name,
        node_selector=spec.node_selector,
        tolerations=spec.tolerations,
        affinity=spec.affinity,
        init_containers=[seeding(devbox, image, ordinary_resources(devbox, options))],
        containers=[_container(devbox, image, options)],
        volumes=[
            volume(VOLUME, claim_of(devbox, devbox.status.content_id)),
            _secret_volume(_KEYS, name, {PUBLIC_KEY: "id.pub", AUTHORIZED_KEYS: "authorized_keys"}),
            _secret_volume(_PROFILE, name, {ENV_PROFILE: "env-profile.sh"}),
            *spec.config.volumes,
        ],
    )
    committer.resume(devbox, pod_spec)
    return Pod(metadata=pod_metadata(devbox, options, sha256(encode(pod_spec)).hexdigest()[:16]), spec=pod_spec)


def _container(devbox: Devbox, image: str, options: Options) -> Container:
    config, name = devbox.spec.config, devbox.metadata.name
    jwt = EnvVarSource(secret_key_ref=SecretKeySelector(name=name, key=JWT_SECRET))
    return Container(
        name=name,
        image=image,
        command=config.command,
        args=config.args,
        working_dir=config.working_dir,
        env=[*config.env, EnvVar(name=JWT_VARIABLE, value_from=jwt)],
        resources=resources(devbox, options),
        volume_mounts=[
            VolumeMount(name=VOLUME, mount_path=config.working_dir, sub_path=PROJECT),
            VolumeMount(name=_KEYS, mount_path="/usr/start/.ssh", read_only=True),
            VolumeMount(
                name=_PROFILE,
                mount_path="/etc/profile.d/env-profile.sh",
                sub_path="env-profile.sh",
                read_only=True,
            ),
            *config.volume_mounts,
        ],
    )


def _secret_volume(name: str, secret: str, items: dict[str, str]) -> Volume:
    paths = [KeyToPath(key=key, path=path) for key, path in items.items()]
    return Volume(name=name, secret=SecretVolumeSource(secret_name=secret, items=paths))
