"""An operator as files: kustomize in kubebuilder's layout, and one manifest of the same objects.

The same operator gives the same bytes. Names and namespaces are written out: kustomizations have neither a prefix nor a
namespace, since roles, webhook configurations and certificates depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.codec import to_json
from kubewright.api.markers import JSONValue
from kubewright.api.resources import Object
from kubewright.deployment.layout import layout_of, objects_of
from kubewright.deployment.operator import Operator
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.yaml import to_yaml


def install_yaml(operator: Operator) -> str:
    """Everything that is deployed, for `kubectl apply --server-side -f`."""
    return _documents(objects_of(operator))


def files_of(operator: Operator) -> dict[str, str]:
    """The content of each file by its path: `config/` with its kustomizations, and `dist/install.yaml`."""
    files: dict[str, str] = {}
    directories = layout_of(operator)
    for directory, found in directories.items():
        files |= {f"config/{directory}/{file}": _documents(objects) for file, objects in found.items()}
        files[f"config/{directory}/kustomization.yaml"] = _kustomization(found)
    files["config/default/kustomization.yaml"] = _kustomization(f"../{directory}" for directory in directories)
    samples = _samples(operator)
    if samples:
        files |= {f"config/samples/{file}": content for file, content in samples.items()}
        files["config/samples/kustomization.yaml"] = _kustomization(samples)
    files["dist/install.yaml"] = install_yaml(operator)
    return dict(sorted(files.items()))


def _samples(operator: Operator) -> dict[str, str]:
    """One file for each, named as kubebuilder names them, and with the name of the object where a kind has several."""
    kinds = [_kind_name(sample) for sample in operator.samples]
    files: dict[str, str] = {}
    for sample, kind in zip(operator.samples, kinds, strict=True):
        file = f"{kind}.yaml" if kinds.count(kind) == 1 else f"{kind}_{sample.metadata.name}.yaml"
        if "/" in file:  # it would be a path to somewhere else
            raise ManifestError(f"a sample is the {sample.kind} {sample.key}: neither kinds nor names have a slash")
        if file in files:
            raise ManifestError(f"two samples are the {sample.kind} {sample.key}: give each a name of its own")
        files[file] = _documents([sample])
    return files


def _kind_name(sample: Object) -> str:
    group, _, version = sample.api_version.rpartition("/")
    return "_".join(part for part in (group.partition(".")[0], version, sample.kind.lower()) if part)


def _kustomization(resources: Iterable[str]) -> str:
    names: list[JSONValue] = [*sorted(resources)]
    return to_yaml({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names})


def _documents(objects: Iterable[Object]) -> str:
    return "---\n".join(to_yaml(_manifest(each)) for each in objects)


def _manifest(obj: Object) -> JSONValue:
    """What is desired of an object: a status is not, nor a spec with nothing in it."""
    value = to_json(obj)
    if not isinstance(value, dict):
        raise TypeError(f"{obj!r} is not an object in JSON")
    return {name: field for name, field in value.items() if name != "status" and (name, field) != ("spec", {})}
