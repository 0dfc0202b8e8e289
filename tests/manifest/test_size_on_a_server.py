"""Definitions that are too large for the annotation of `kubectl apply` are applied on the server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from kubewright.api.codec import encode
from kubewright.api.core.v1 import PodTemplateSpec
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.client import Client
from kubewright.controlplane import ControlPlane, KubectlFailed
from kubewright.manifest.crd import crd_of, crd_yaml, definition_of

DOC = Path(__file__).parents[2] / "docs" / "definitions.md"
ANNOTATION = 256 * 1024
"""The bytes that all annotations of an object may have."""


class WorkloadSpec(Model):
    template: PodTemplateSpec


@resource("sizes.kubewright.test/v1")
class Workload(Resource[WorkloadSpec, None]):
    """Embeds all of a pod."""


class ChapterSpec(Model):
    text: Annotated[str, Meta(description="Many words. " * 25_000)] = ""


@resource("sizes.kubewright.test/v1")
class Chapter(Resource[ChapterSpec, None]):
    """Is described at length."""


def test_the_definition_of_a_kind_with_a_pod_template_fits_the_annotation() -> None:
    size = len(encode(crd_of(Workload)))
    documented = re.search(r"Here it has (\d+) KiB", DOC.read_text())
    assert documented is not None
    assert round(size / 1024) == int(documented[1])
    assert size < ANNOTATION


async def test_a_larger_definition_is_applied_on_the_server_or_with_shorter_descriptions(
    admin: Client, control_plane: ControlPlane
) -> None:
    definition = definition_of(Chapter)
    assert len(encode(definition)) > ANNOTATION
    applied = await admin.apply(definition, dry_run=True, field_validation="Strict")
    assert applied.spec.versions[0].schema == definition.spec.versions[0].schema

    with pytest.raises(KubectlFailed, match=r"metadata\.annotations: Too long"):
        await control_plane.kubectl("apply", "--dry-run=server", "-f", "-", input=crd_yaml(Chapter))
    shorter = crd_yaml(Chapter, max_description=200)
    await control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=shorter)
