"""There is no container engine here: what an image is made of is read."""

from __future__ import annotations

import json
import re

import pytest
from tests.deployment.ferries import ferries

from kubewright.deployment import dockerfile_of
from kubewright.deployment.workload import deployment
from kubewright.manifest import ManifestError


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in dockerfile_of("ferries.operator").splitlines() if line]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_runs_as_the_user_of_the_deployment() -> None:
    last = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    [user] = [rest for name, rest in last if name == "USER"]
    context = deployment(ferries()).spec.template.spec.security_context
    assert context is not None
    assert user == f"{context.run_as_user}:{context.run_as_group}"
    # Nothing runs or is written as that user, and nothing follows as another one.
    assert [name for name, _ in last] == ["FROM", "COPY", "ENV", "USER", "ENTRYPOINT"]


def test_no_shell_is_between_the_runtime_and_a_command() -> None:
    commands = [json.loads(rest) for name, rest in instructions() if name in ("RUN", "CMD", "ENTRYPOINT")]
    assert commands[-1] == ["/operator/bin/python", "-m", "ferries.operator"]
    assert not {"sh", "bash", "-c"} & {word for command in commands for word in command}


def test_bases_are_pinned_to_a_version_and_small() -> None:
    bases = [rest for name, rest in instructions() if name == "FROM"]
    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim( AS build)?", base) for base in bases)
    assert {name for name, _ in instructions()} == {"FROM", "RUN", "COPY", "ENV", "USER", "ENTRYPOINT"}


def test_sources_are_in_the_first_stage_only() -> None:
    copies = [rest for name, rest in instructions() if name == "COPY"]
    assert copies == [". /src", "--from=build /operator /operator"]


@pytest.mark.parametrize("module", ["", "a b", 'a"', "a-b", "a..b"])
def test_what_python_cannot_run_is_refused(module: str) -> None:
    with pytest.raises(ManifestError, match="is not a module"):
        dockerfile_of(module)


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ManifestError, match='Python "latest"'):
        dockerfile_of("ferries", python="latest")
