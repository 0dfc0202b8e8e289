"""`kubewright types`: Python types from a CustomResourceDefinition, of a file or of a cluster."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.builtin import MODULES
from kubewright.api.codec import to_json
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import GroupVersionKind
from kubewright.cli.arguments import command_parser
from kubewright.cli.cluster.target import add_cluster_arguments
from kubewright.cli.text_file import text_of
from kubewright.client import Client, Config
from kubewright.client.errors import NotFound
from kubewright.manifest.errors import ManifestError
from kubewright.typegen import Definition, definition, generate, read_definitions
from kubewright.typegen.module import MARK

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_DEFINITION: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_KIND: Final = re.compile(r"(?P<group>[a-z0-9.-]+)/(?P<version>v[a-z0-9]+)/(?P<kind>[A-Za-z][A-Za-z0-9-]*)")
_MIN_LINE_LENGTH: Final = 60


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "types",
        summary="generate Python types from a CustomResourceDefinition",
        description="Generate a Python module with typed models of custom resources, from their definitions. "
        "Definitions come from a file or from a cluster; other manifests in the file are ignored.",
        examples=[
            "kubewright types crd.yaml -o widgets.py",
            "kubewright types kubevirt.io/v1/VirtualMachine --context staging -o kubevirt.py",
        ],
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help='a file of manifests, "-" for standard input, or what a cluster has: GROUP/VERSION/KIND, such as '
        "cert-manager.io/v1/Certificate, or the name of a definition, such as certificates.cert-manager.io",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the module to write (default: standard output)"
    )
    parser.add_argument(
        "--version",
        action="append",
        dest="versions",
        default=[],
        metavar="NAME",
        help="the version to generate, such as v1beta1; may be repeated (default: the one that kubectl prefers)",
    )
    parser.add_argument(
        "--line-length",
        type=_line_length,
        default=88,
        metavar="N",
        help="as your formatter has it (default %(default)s)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite FILE although this command has not written it")
    add_cluster_arguments(parser)
    parser.set_defaults(run=_run)


def _line_length(text: str) -> int:
    if not text.isdecimal() or int(text) < _MIN_LINE_LENGTH:
        raise argparse.ArgumentTypeError(f"{text!r} is not a line length: expected a number from {_MIN_LINE_LENGTH} on")
    return int(text)


def _run(options: argparse.Namespace) -> None:
    definitions, versions = _definitions(options)
    module = generate(definitions, versions=versions, line_length=options.line_length)
    if options.output is None:
        sys.stdout.write(module)
    else:
        _write(options.output, module, force=options.force)


def _definitions(options: argparse.Namespace) -> tuple[list[Definition], list[str]]:
    source, versions = options.source, options.versions
    if source == "-":
        return read_definitions(sys.stdin.read(), "standard input"), versions
    if Path(source).exists():
        return read_definitions(text_of(Path(source)), source), versions
    kind = _KIND.fullmatch(source)
    if kind is not None:
        gvk = GroupVersionKind(kind["group"], kind["version"], kind["kind"])
        found = asyncio.run(_fetch(options, gvk))
        return [found], [*versions, gvk.version]
    if _DEFINITION.fullmatch(source) and not source.endswith((".yaml", ".yml", ".json")):
        return [asyncio.run(_fetch(options, source))], versions
    raise ManifestError(
        f"there is no file {source!r}, and it is neither GROUP/VERSION/KIND, such as cert-manager.io/v1/Certificate, "
        "nor the name of a definition, such as certificates.cert-manager.io"
    )


async def _fetch(options: argparse.Namespace, wanted: GroupVersionKind | str) -> Definition:
    """A definition that a cluster has, by its kind or by its name."""
    config = Config.load(kubeconfig=options.kubeconfig, context=options.context)
    async with Client(config) as client:
        name = wanted if isinstance(wanted, str) else await _definition_name(client, wanted)
        try:
            found = await client.get(CustomResourceDefinition, name)
        except NotFound:
            raise KubernetesError(
                f"{config.server} has no CustomResourceDefinition {name}: its kind is served by an aggregated API, or "
                "the name is another one (kubectl get crd)"
            ) from None
    return definition(to_json(found), f"the definition {name} of {config.server}")


async def _definition_name(client: Client, gvk: GroupVersionKind) -> str:
    if gvk.api_version in MODULES:
        raise KubernetesError(f"{gvk.kind} is built into Kubernetes: import it from {MODULES[gvk.api_version]}")
    try:
        resources = await client.discover(gvk.api_version)
    except NotFound:
        resources = []
    for resource in resources:
        if resource.kind == gvk.kind and "/" not in resource.name:
            return f"{resource.name}.{gvk.group}"
    kinds = ", ".join(sorted({resource.kind for resource in resources})) or "none"
    raise KubernetesError(
        f'the server has no kind "{gvk.kind}" in {gvk.api_version} (kinds there: {kinds}); is its '
        "CustomResourceDefinition installed?"
    )


def _write(path: Path, module: str, *, force: bool) -> None:
    """Write the module, but not over a file that this command has not written."""
    try:
        if path.is_file() and not force:
            written = path.read_text(encoding="utf-8", errors="replace")
            if written and MARK not in written:
                raise ManifestError(
                    f"the file {str(path)!r} was not generated by this command: name another one with -o FILE, or "
                    "overwrite it with --force"
                )
        path.write_text(module, encoding="utf-8")
    except OSError as error:
        raise ManifestError(f"cannot write {path}: {error.strerror}") from None
