"""Creating, updating and deleting: what is stored, what is refused, and with which message."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

CONFIG_MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/NAMESPACE/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases"
MERGE = "application/merge-patch+json"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def config_map(name: str, data: dict[str, JSONValue] | None = None, **metadata: JSONValue) -> JSONObject:
    return {"metadata": {"name": name, **metadata}, "data": data or {"x": "1"}}


async def created(ask: Ask, name: str, **metadata: JSONValue) -> JSONObject:
    answer = await ask("POST", CONFIG_MAPS, config_map(name, None, **metadata))
    assert answer.code == 201, answer.body
    return answer.body


# The body of a creation, and why it is refused.
REFUSED: list[tuple[JSONValue, tuple[int, str, str]]] = [
    (
        config_map("a", resourceVersion="5"),
        (500, "", "resourceVersion should not be set on objects to be created"),
    ),
    (
        config_map("a", namespace="other"),
        (400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
    ),
    (
        {"metadata": {}},
        (422, "Invalid", 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
    ),
    (
        {"kind": "Pod", **config_map("a")},
        (
            400,
            "BadRequest",
            'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): '
            "unknown conversion",
        ),
    ),
    (
        {"kind": "Nope", **config_map("a")},
        (
            400,
            "BadRequest",
            'Nope in version "v1" cannot be handled as a ConfigMap: no kind "Nope" is registered for version "v1" in '
            'scheme "pkg/runtime/scheme.go:111"',
        ),
    ),
    (
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}},
        (
            400,
            "BadRequest",
            'Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to '
            "(core.ConfigMap): unknown conversion",
        ),
    ),
]


@pytest.mark.parametrize(("body", "expected"), REFUSED)
async def test_an_invalid_creation_is_refused_with_a_reason(
    ask: Ask, body: JSONValue, expected: tuple[int, str, str]
) -> None:
    assert (await ask("POST", CONFIG_MAPS, body)).refusal == expected


async def test_fields_set_by_the_server_are_not_taken_from_the_client(ask: Ask) -> None:
    sent: dict[str, JSONValue] = {
        "uid": "mine",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/x",
        "generation": 7,
        "resourceVersion": "0",
    }
    metadata = mapping(await created(ask, "a", **sent), "metadata")

    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] != "2020-01-01T00:00:00Z"
    assert metadata["resourceVersion"] != "0"
    # For a kind without generations the client may set any value.
    assert metadata["generation"] == 7
    assert metadata.keys().isdisjoint({"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})


async def test_a_name_is_taken_until_its_object_is_gone(ask: Ask) -> None:
    await created(ask, "a", finalizers=["example.com/hold"])
    twice = await ask("POST", CONFIG_MAPS, config_map("a"))
    await ask("DELETE", f"{CONFIG_MAPS}/a")
    waiting = await ask("POST", CONFIG_MAPS, config_map("a"))

    assert twice.refusal == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert waiting.refusal == (409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists')


async def test_a_generated_name_fits_into_a_label(ask: Ask) -> None:
    short = await ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}})
    long = await ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "g" * 70}})

    assert len(text(short.body, "metadata", "name")) == 7
    assert len(text(long.body, "metadata", "name")) == 63
    assert set(text(long.body, "metadata", "name")[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")


async def test_nothing_is_created_where_no_namespace_is(ask: Ask) -> None:
    answer = await ask("POST", "/apis/apps/v1/namespaces/none-such/deployments", {"metadata": {"name": "a"}})

    assert answer.refusal == (404, "NotFound", 'namespaces "none-such" not found')


async def test_owners_that_are_named_twice_are_named_once(ask: Ask) -> None:
    owner: JSONValue = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}
    answer = await ask("POST", CONFIG_MAPS, config_map("a", ownerReferences=[owner, owner]))

    assert items(answer.body, "metadata", "ownerReferences") == [owner]
    assert answer.warnings == [
        '299 - ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, '
        'and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u"'
    ]


# Options that make no sense: the query of a creation, and the complaint.
BAD_OPTIONS = [
    ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
    (f"fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
    ("fieldManager=a%00b", 'fieldManager: Invalid value: "a\\x00b": invalid character U+0000 (at position 1)'),
    (
        "fieldValidation=Nope",
        'fieldValidation: Unsupported value: "Nope": supported values: "", "Ignore", "Strict", "Warn"',
    ),
]


@pytest.mark.parametrize(("query", "complaint"), BAD_OPTIONS)
async def test_options_that_make_no_sense_are_refused(ask: Ask, query: str, complaint: str) -> None:
    creation = await ask("POST", f"{CONFIG_MAPS}?{query}", config_map("a"))
    update = await ask("PUT", f"{CONFIG_MAPS}/a?{query}", config_map("a"))
    patch = await ask("PATCH", f"{CONFIG_MAPS}/a?{query}", {}, MERGE)

    for answer, kind in ((creation, "CreateOptions"), (update, "UpdateOptions"), (patch, "PatchOptions")):
        assert answer.refusal == (422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {complaint}')


# The body of an update, and why it is refused.
REFUSED_UPDATES: list[tuple[JSONObject, tuple[int, str, str]]] = [
    (
        config_map("b"),
        (400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"),
    ),
    (
        {"data": {}},
        (
            400,
            "BadRequest",
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
    ),
    (
        config_map("a", namespace="other"),
        (400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
    ),
    (
        config_map("a", resourceVersion="1"),
        (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'),
    ),
    (config_map("a", resourceVersion="x"), (500, "", 'strconv.ParseUint: parsing "x": invalid syntax')),
]


@pytest.mark.parametrize(("body", "expected"), REFUSED_UPDATES)
async def test_an_update_must_be_of_the_object_it_is_sent_to(
    ask: Ask, body: JSONObject, expected: tuple[int, str, str]
) -> None:
    await created(ask, "a")
    assert (await ask("PUT", f"{CONFIG_MAPS}/a", body)).refusal == expected


async def test_an_update_of_another_object_of_that_name_is_a_conflict(ask: Ask) -> None:
    metadata = mapping(await created(ask, "a"), "metadata")
    answer = await ask("PUT", f"{CONFIG_MAPS}/a", config_map("a", uid="other"))
    patch = await ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"uid": "other"}}, MERGE)

    assert answer.refusal == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: '
        f"/registry/configmaps/{metadata['namespace']}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: other, UID in object meta: {metadata['uid']}",
    )
    assert patch.refusal == (
        422,
        "Invalid",
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable',
    )


async def test_what_an_update_says_about_its_creation_is_ignored(ask: Ask) -> None:
    before = await created(ask, "a")
    sent = config_map("a", creationTimestamp="2020-01-01T00:00:00Z", generation=9, selfLink="/x")
    after = await ask("PUT", f"{CONFIG_MAPS}/a", sent)

    assert (after.code, after.body) == (200, before)


async def test_a_write_that_changes_nothing_is_not_stored(ask: Ask) -> None:
    before = await created(ask, "a")
    for method, body, content_type in (
        ("PUT", config_map("a"), "application/json"),
        ("PATCH", {"data": {"x": "1"}}, MERGE),
        ("PATCH", [], "application/json-patch+json"),
        ("PATCH", {"metadata": {"annotations": None}}, "application/strategic-merge-patch+json"),
    ):
        again = await ask(method, f"{CONFIG_MAPS}/a?fieldManager=other", body, content_type)
        assert again.body == before, (method, content_type)


async def test_only_some_kinds_are_updated_without_a_revision_or_created_by_an_update(ask: Ask) -> None:
    unknown = await ask("PUT", f"{CONFIG_MAPS}/none", config_map("none"))
    lease = await ask("PUT", f"{LEASES}/new", {"metadata": {"name": "new"}, "spec": {}})
    again = await ask("PUT", f"{LEASES}/new", {"metadata": {"name": "new"}, "spec": {"holderIdentity": "me"}})

    assert unknown.refusal == (404, "NotFound", 'configmaps "none" not found')
    assert lease.code == 201
    assert again.refusal == (
        422,
        "Invalid",
        'leases.coordination.k8s.io "new" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified '
        "for an update",
    )


async def test_a_dry_run_answers_and_stores_nothing(ask: Ask) -> None:
    await created(ask, "a")
    creation = await ask("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("b"))
    taken = await ask("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a"))
    deletion = await ask("DELETE", f"{CONFIG_MAPS}/a", {"dryRun": ["All"]})
    there = await ask("GET", CONFIG_MAPS)

    assert (creation.code, at(creation.body, "metadata", "resourceVersion")) == (201, None)
    assert taken.code == 409
    assert (deletion.code, deletion.body["status"]) == (200, "Success")
    names = [text(item, "metadata", "name") for item in items(there.body, "items")]
    assert [name for name in names if name != "kube-root-ca.crt"] == ["a"]


# Options of a deletion that make no sense.
BAD_DELETIONS: list[tuple[str, JSONValue, tuple[int, str, str]]] = [
    (
        "",
        {"propagationPolicy": "Nope"},
        (
            422,
            "Invalid",
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Nope": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
        ),
    ),
    (
        "",
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        (
            422,
            "Invalid",
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and '
            "deletionPropagation cannot be both set",
        ),
    ),
    (
        "",
        {"dryRun": ["None"]},
        (
            422,
            "Invalid",
            'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["None"]: supported values: "All"',
        ),
    ),
    (
        "",
        {"gracePeriodSeconds": "5"},
        (
            400,
            "BadRequest",
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
    ),
    ("?gracePeriodSeconds=x", None, (400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax')),
]


@pytest.mark.parametrize(("query", "options", "expected"), BAD_DELETIONS)
async def test_a_deletion_that_makes_no_sense_is_refused(
    ask: Ask, query: str, options: JSONValue, expected: tuple[int, str, str]
) -> None:
    await created(ask, "a")
    assert (await ask("DELETE", f"{CONFIG_MAPS}/a{query}", options)).refusal == expected


async def test_a_deletion_may_be_of_one_revision_only(ask: Ask) -> None:
    metadata = mapping(await created(ask, "a", labels={"app": "a"}), "metadata")
    options: JSONValue = {"preconditions": {"resourceVersion": "1"}}
    one = await ask("DELETE", f"{CONFIG_MAPS}/a", options)
    all_ = await ask("DELETE", f"{CONFIG_MAPS}?labelSelector=app", options)

    expected = (
        409,
        "Conflict",
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified",
    )
    assert (one.refusal, all_.refusal) == (expected, expected)


async def test_what_is_deleted_at_once_is_answered_with_its_resource(ask: Ask) -> None:
    uid = at(await created(ask, "a"), "metadata", "uid")
    answer = await ask("DELETE", f"{CONFIG_MAPS}/a")

    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": uid},
    }


async def test_finalizers_keep_an_object_and_only_become_fewer(ask: Ask) -> None:
    await created(ask, "a", finalizers=["example.com/one", "example.com/two"])
    marked = await ask("DELETE", f"{CONFIG_MAPS}/a")
    again = await ask("DELETE", f"{CONFIG_MAPS}/a")
    added = await ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["example.com/new"]}}, MERGE)
    fewer = await ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["example.com/one"]}}, MERGE)
    last = await ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)
    gone = await ask("GET", f"{CONFIG_MAPS}/a")

    assert (marked.code, at(marked.body, "metadata", "deletionGracePeriodSeconds")) == (200, 0)
    assert again.body == marked.body
    assert added.refusal == (
        422,
        "Invalid",
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is '
        'being deleted, found new finalizers []string{"example.com/new"}',
    )
    assert (fewer.code, last.code) == (200, 200)
    # The last state is that of the patch, at the revision before.
    assert at(last.body, "metadata", "resourceVersion") == at(fewer.body, "metadata", "resourceVersion")
    assert gone.refusal == (404, "NotFound", 'configmaps "a" not found')


async def test_the_old_option_for_a_cascade_is_accepted(ask: Ask) -> None:
    await created(ask, "a", finalizers=["example.com/hold"])

    assert (await ask("DELETE", f"{CONFIG_MAPS}/a", {"orphanDependents": False})).code == 202


async def test_a_pod_that_runs_nowhere_is_deleted_at_once_and_is_shown_as_deleted(ask: Ask) -> None:
    pods = "/api/v1/namespaces/NAMESPACE/pods"
    container: JSONValue = {"name": "main", "image": "nginx"}
    await ask("POST", pods, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})
    deleted = await ask("DELETE", f"{pods}/a")
    gone = await ask("GET", f"{pods}/a")

    metadata = mapping(deleted.body, "metadata")
    assert (deleted.body["kind"], metadata["deletionGracePeriodSeconds"], metadata["generation"]) == ("Pod", 0, 2)
    assert gone.code == 404


async def test_generations_count_changes_of_the_spec(ask: Ask) -> None:
    template: JSONValue = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec: JSONValue = {"replicas": 0, "paused": True, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    labelled = await ask("PATCH", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    scaled = await ask("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 1}, "status": {"replicas": 9}}, MERGE)
    status: JSONValue = {"spec": {"replicas": 7}, "metadata": {"annotations": {"x": "z"}}}
    judged = await ask("PATCH", f"{DEPLOYMENTS}/d/status", status, MERGE)
    deleted = await ask("DELETE", f"{DEPLOYMENTS}/d", {"propagationPolicy": "Foreground"})

    generations = [at(answer.body, "metadata", "generation") for answer in (labelled, scaled, judged, deleted)]
    assert generations == [1, 2, 2, 3]
    # The status endpoint of built-in kinds takes metadata, and never the spec.
    assert (at(judged.body, "spec", "replicas"), at(judged.body, "metadata", "annotations", "x")) == (1, "z")


async def test_methods_that_a_path_has_no_use_for_are_refused(ask: Ask) -> None:
    answers = [
        await ask("POST", f"{CONFIG_MAPS}/a", config_map("a")),
        await ask("PUT", CONFIG_MAPS, config_map("a")),
        await ask("DELETE", "/api/v1/configmaps"),
    ]

    message = "the server does not allow this method on the requested resource"
    assert [answer.refusal for answer in answers] == [(405, "MethodNotAllowed", message)] * 3
