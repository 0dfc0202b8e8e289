import pytest

from kubewright.api.naming import default_plural, json_name, python_name


@pytest.mark.parametrize(
    ("python", "json"),
    [("image", "image"), ("ready_replicas", "readyReplicas"), ("from_", "from"), ("fields_v1", "fieldsV1")],
)
def test_snake_case_in_python_is_camel_case_in_json(python: str, json: str) -> None:
    assert json_name(python) == json
    assert python_name(json) == python


@pytest.mark.parametrize(
    ("json", "python"),
    [
        ("clusterIP", "cluster_ip"),
        ("podIPs", "pod_ips"),
        ("nonResourceURLs", "non_resource_urls"),
        ("caBundle", "ca_bundle"),
        ("x-kubernetes-list-type", "x_kubernetes_list_type"),
        ("$ref", "ref"),
        ("systemUUID", "system_uuid"),
        ("continue", "continue_"),
    ],
)
def test_every_json_name_has_one_python_name_that_can_be_guessed(json: str, python: str) -> None:
    assert python_name(json) == python
    assert python.isidentifier()


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("PodManager", "podmanagers"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Devbox", "devboxes"),
        ("Batch", "batches"),
    ],
)
def test_plurals_are_guessed_as_kubernetes_tools_do(kind: str, plural: str) -> None:
    assert default_plural(kind) == plural
