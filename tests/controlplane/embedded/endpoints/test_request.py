import pytest

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import QueryParameters, Target, parse_query, parse_target


def target(method: str, path: str, query: str = "") -> Target:
    return parse_target(method, path, parse_query(query))


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        ("GET", "/api/v1/pods", "", "list"),
        ("GET", "/api/v1/pods", "watch=true", "watch"),
        ("GET", "/api/v1/pods", "watch=false", "list"),
        ("GET", "/api/v1/namespaces/a/pods/b", "", "get"),
        ("POST", "/api/v1/namespaces/a/pods", "", "create"),
        ("PUT", "/api/v1/namespaces/a/pods/b", "", "update"),
        ("PATCH", "/api/v1/namespaces/a/pods/b", "", "patch"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", "", "delete"),
        ("DELETE", "/api/v1/namespaces/a/pods", "", "deletecollection"),
        ("GET", "/healthz", "", "get"),
    ],
)
def test_the_verb_follows_from_method_name_and_query(method: str, path: str, query: str, verb: str) -> None:
    assert target(method, path, query).verb == verb


def test_a_namespaced_object_is_found_in_its_group() -> None:
    found = target("GET", "/apis/apps/v1/namespaces/shop/deployments/web/scale")
    assert (found.group, found.version, found.resource) == ("apps", "v1", "deployments")
    assert (found.namespace, found.name, found.subresource) == ("shop", "web", "scale")


def test_a_namespace_is_an_object_and_has_subresources_of_its_own() -> None:
    found = target("GET", "/api/v1/namespaces/shop")
    assert (found.resource, found.name, found.namespace) == ("namespaces", "shop", "shop")
    finalize = target("PUT", "/api/v1/namespaces/shop/finalize")
    assert (finalize.resource, finalize.name, finalize.subresource) == ("namespaces", "shop", "finalize")


def test_an_escaped_slash_in_a_path_is_a_slash() -> None:
    """As in Go, and so no name can have one."""
    found = target("GET", "/api/v1/namespaces/a/pods/b%2Fc")
    assert (found.name, found.subresource) == ("b", "c")


@pytest.mark.parametrize("path", ["/", "/version", "/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3"])
def test_other_paths_are_no_resources(path: str) -> None:
    assert target("GET", path).resource == ""


def test_of_a_parameter_given_twice_the_first_counts() -> None:
    query = parse_query("limit=1&limit=2&empty=")
    assert (query.text("limit"), query.number("limit"), query.text("empty")) == ("1", 1, "")
    assert query.number("nothing") is None


def test_a_number_that_is_none_is_a_bad_request() -> None:
    with pytest.raises(StatusError, match="invalid syntax"):
        parse_query("limit=many").number("limit")


@pytest.mark.parametrize(
    ("text", "value"), [("x=true", True), ("x=1", True), ("x", True), ("x=false", False), ("", False)]
)
def test_a_flag_is_true_unless_it_says_otherwise(text: str, value: bool) -> None:
    assert parse_query(text).flag("x") is value


def test_a_dry_run_is_requested() -> None:
    assert parse_query("dryRun=All").dry_run
    assert not parse_query("").dry_run


@pytest.mark.parametrize(
    ("path", "namespace", "resource", "name"),
    [
        ("/api/v1/watch/pods", "", "pods", ""),
        ("/api/v1/watch/namespaces/n/pods", "n", "pods", ""),
        ("/api/v1/watch/namespaces/n/pods/p", "n", "pods", "p"),
        ("/api/v1/watch/namespaces", "", "namespaces", ""),
        ("/api/v1/watch/namespaces/n", "n", "namespaces", "n"),
        ("/apis/example.com/v1/watch/namespaces/n/widgets/w", "n", "widgets", "w"),
    ],
)
def test_a_watch_may_be_requested_by_the_path(path: str, namespace: str, resource: str, name: str) -> None:
    found = target("GET", path)
    assert (found.verb, found.namespace, found.resource, found.name) == ("watch", namespace, resource, name)


def test_a_resource_may_be_called_watch() -> None:
    found = target("GET", "/apis/example.com/v1/watch")
    assert (found.verb, found.resource) == ("list", "watch")


def test_parts_of_a_query_that_cannot_be_decoded_are_ignored() -> None:
    query = parse_query("a=%zz&b=%20c&d;e=1&f=1%2&g=+h")

    assert query.values == {"b": " c", "g": " h"}


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("1_000", "invalid syntax"),
        ("\u0661", "invalid syntax"),
        (" 1", "invalid syntax"),
        (str(2**63), "value out of range"),
    ],
)
def test_a_number_is_one_that_go_reads(sent: str, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        QueryParameters({"limit": sent}).number("limit")

    assert refused.value.message.endswith(f": {why}")
    assert QueryParameters({"limit": "+7"}).number("limit") == 7
