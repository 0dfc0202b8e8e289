from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from kubewright.client.config.kubeconfig import Kubeconfig, KubeconfigUser
from kubewright.client.errors import ConfigError

SECRET = "s3cr3t-t0k3n"

COMPLETE = """
apiVersion: v1
kind: Config
current-context: staging
preferences: {colors: true}
clusters:
- name: one
  cluster: {server: "https://one", unknown-key: 1}
users:
- name: admin
  user: {token: s3cr3t-t0k3n}
- name: bob
  user: {username: bob, password: s3cr3t-t0k3n}
contexts:
- name: staging
  context: {cluster: one, user: admin, namespace: ops}
- name: anonymous
  context: {cluster: one}
"""


def failure_of(text: str, context: str | None = None) -> str:
    """The message about a kubeconfig, which shows no secret, without its beginning."""
    with pytest.raises(ConfigError) as failure:
        Kubeconfig.from_text(text).select(context)
    assert SECRET not in str(failure.value)
    return str(failure.value).removeprefix("cannot read the kubeconfig given as text: ")


def test_current_context_is_selected() -> None:
    selection = Kubeconfig.from_text(COMPLETE).select(None)

    assert selection.cluster.value.server == "https://one"
    assert selection.user is not None
    assert (selection.user.name, selection.user.value.token) == ("admin", SECRET)
    assert selection.context.value.namespace == "ops"


def test_named_context_is_selected_and_may_be_without_a_user() -> None:
    selection = Kubeconfig.from_text(COMPLETE).select("anonymous")

    assert selection.user is None


def test_json_is_yaml_too() -> None:
    text = (
        '{"clusters": [{"name": "c", "cluster": {"server": "https://json"}}], "users": null, '
        '"contexts": [{"name": "x", "context": {"cluster": "c"}}], "current-context": "x"}'
    )

    assert Kubeconfig.from_text(text).select(None).cluster.value.server == "https://json"


def test_date_is_text_as_kubernetes_reads_it() -> None:
    text = COMPLETE.replace("staging", "2024-01-31")

    assert Kubeconfig.from_text(text).select(None).context.name == "2024-01-31"


def test_of_two_entries_with_one_name_the_first_counts() -> None:
    text = COMPLETE + "- {name: staging, context: {cluster: other}}\n"

    assert Kubeconfig.from_text(text).select(None).cluster.name == "one"


def test_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(COMPLETE, encoding="utf-8-sig")

    assert Kubeconfig.from_files([path]).select(None).cluster.name == "one"


def test_files_are_merged_as_kubectl_merges(tmp_path: Path) -> None:
    """Whole entries: what the second file adds to an entry of the first does not count."""
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    for path in (first, second):
        path.parent.mkdir()
    first.write_text(
        "users: [{name: u, user: {token: first}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
    )
    second.write_text(
        "current-context: x\n"
        "users: [{name: u, user: {token: second, as: jane}}, {name: v, user: {}}]\n"
        "contexts: [{name: x, context: {cluster: d, user: v}}, {name: z, context: {cluster: c, user: v}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://c', certificate-authority: ca.crt}}]\n"
    )

    merged = Kubeconfig.from_files([first, second])
    selection = merged.select(None)

    assert selection.user is not None
    assert selection.user.value == KubeconfigUser(token="first")
    assert selection.cluster.source.resolve("ca.crt") == second.parent / "ca.crt"
    assert selection.user.source.resolve("key") == first.parent / "key"
    assert merged.select("z").user is not None


def test_first_current_context_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(COMPLETE.replace("current-context: staging", "current-context: anonymous"))
    second.write_text(COMPLETE)

    assert Kubeconfig.from_files([first, second]).select(None).context.name == "anonymous"


def test_relative_paths_start_from_the_file_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "config").write_text(COMPLETE)
    monkeypatch.chdir(tmp_path)

    source = Kubeconfig.from_files([Path("sub/config")]).select(None).cluster.source

    assert source.resolve("pki/ca.crt") == tmp_path / "sub" / "pki" / "ca.crt"
    assert source.resolve("/etc/ca.crt") == Path("/etc/ca.crt")
    assert Kubeconfig.from_text(COMPLETE).select(None).cluster.source.resolve("ca.crt") == tmp_path / "ca.crt"


def test_missing_file_is_skipped_only_when_another_one_exists(tmp_path: Path) -> None:
    missing, there = tmp_path / "missing", tmp_path / "there"
    there.write_text(COMPLETE)

    assert Kubeconfig.from_files([missing, there], skip_absent=True).select(None).context.name == "staging"
    with pytest.raises(ConfigError) as failure:
        Kubeconfig.from_files([missing, there])
    assert str(failure.value) == f'cannot read the kubeconfig "{missing}": there is no such file'
    with pytest.raises(ConfigError) as failure:
        Kubeconfig.from_files([missing, tmp_path / "other"], skip_absent=True)
    assert str(failure.value) == f'cannot read the kubeconfig "{missing}", "{tmp_path}/other": there is no such file'


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match=f'cannot read the kubeconfig "{tmp_path}": Is a directory'):
        Kubeconfig.from_files([tmp_path])
    with pytest.raises(ConfigError, match=f'cannot read the kubeconfig "{binary}": it is not UTF-8 text'):
        Kubeconfig.from_files([binary])


def test_of_several_files_the_bad_one_is_named(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(COMPLETE)
    bad.write_text("clusters: {}")

    with pytest.raises(ConfigError) as failure:
        Kubeconfig.from_files([good, bad])
    assert str(failure.value) == f'cannot read the kubeconfig "{bad}": clusters: expected a list, found a mapping'


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "{}", "clusters: []"])
def test_empty_document_is_reported_as_empty(text: str) -> None:
    assert failure_of(text) == "it is empty; expected clusters, users and contexts"


def test_undefined_reference_lists_the_defined_names() -> None:
    assert failure_of(COMPLETE.replace("user: admin", "user: ci")) == (
        'context "staging" names the user "ci", which is not defined (users: admin, bob)'
    )
    assert failure_of(COMPLETE.replace("cluster: one", "cluster: two")) == (
        'context "staging" names the cluster "two", which is not defined (clusters: one)'
    )
    assert failure_of(COMPLETE.replace("cluster: one, ", "")) == 'context "staging" names no cluster (clusters: one)'


def test_reference_is_explained_with_the_file_of_the_context(tmp_path: Path) -> None:
    """The example of the style guide."""
    path = tmp_path / "prod.yaml"
    path.write_text(COMPLETE.replace("user: admin", "user: ci"))

    with pytest.raises(ConfigError) as failure:
        Kubeconfig.from_files([path]).select(None)
    assert str(failure.value) == (
        f'cannot read the kubeconfig "{tmp_path}{os.sep}prod.yaml": '
        'context "staging" names the user "ci", which is not defined (users: admin, bob)'
    )


def test_unknown_context_lists_the_contexts() -> None:
    assert failure_of(COMPLETE, "prod") == 'the context "prod" is not defined (contexts: anonymous, staging)'
    assert failure_of(COMPLETE.replace("current-context: staging", "current-context: gone")) == (
        'the current-context "gone" is not defined (contexts: anonymous, staging)'
    )
    assert failure_of(COMPLETE.replace("current-context: staging", "")) == (
        "it has no current-context; name a context (contexts: anonymous, staging)"
    )
    assert failure_of("users: [{name: x}]") == "it has no current-context; name a context (contexts: none)"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(yaml.safe_load(COMPLETE), indent=2),
        "{current-context: a, contexts: [{name: a, context: {cluster: one, user: admin}}],"
        "clusters: [{name: one}], users: [{name: admin, user: {token: s3cr3t-t0k3n}}]}",
    ],
)
def test_json_is_a_kubeconfig_and_so_is_yaml_that_looks_like_it(text: str) -> None:
    selected = Kubeconfig.from_text(text).select(None)
    assert selected.user is not None
    assert (selected.cluster.name, selected.user.value.token) == ("one", SECRET)


BOMB = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join(10 * [f'*a{i - 1}'])}]\n" for i in range(1, 10))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("clusters:\n- name: x\n  cluster: [1\nusers: 2", "line 4, column 6: while parsing a flow sequence"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed"),
        ("users:\n\t- x", "line 2, column 1: while scanning for the next token"),
        (f"users: '{SECRET}", "line 1, column "),
        (f"users: *{SECRET}", "line 1, column 8: found undefined alias"),
        (f"users: !{SECRET} x", "users: expected a list, found a string"),
        (
            '{"users": [\n{"name": "a" "user": 1}]}',
            "line 2, column 14: while parsing a flow mapping, did not find expected ',' or '}'",
        ),
        ('{"users": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
        ("users: " + "[" * 25_000, "line 1, column 10008: exceeded max depth of 10000"),
        (BOMB, "document contains excessive aliasing"),
        ('{"users": "\udc80"}', "it holds characters or values that YAML does not allow"),
        ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document in the stream"),
        (f"users: {SECRET}\x01", "it holds characters or values that YAML does not allow"),
        (f"users: !!int {SECRET}", "line 1, column 8: cannot decode !!str as a !!int"),
    ],
)
def test_what_is_not_yaml_is_located(text: str, problem: str) -> None:
    assert failure_of(text).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "the document: expected a mapping, found a list"),
        (SECRET, "the document: expected a mapping, found a string"),
        ("users: {}", "users: expected a list, found a mapping"),
        ("users: [{user: {}}]", 'users[0]: the field "name" is missing'),
        ("users: [{name: 7}]", "users[0].name: expected a string, found a number; put it in quotes"),
        (
            "users: [{name: a}, {name: b, user: {token: 12345}}]",
            "users[1].user.token: expected a string, found a number; put it in quotes",
        ),
        ("users: [{name: a, user: [1]}]", "users[0].user: expected a mapping, found a list"),
        (
            "users: [{name: a, user: {exec: {env: [{value: x}]}}}]",
            'users[0].user.exec.env[0]: the field "name" is missing',
        ),
        (
            "users: [{name: a, user: {as-user-extra: {k: v}}}]",
            "users[0].user.as-user-extra[...]: expected a list, found a string",
        ),
        ("users: [{name: y}]", "users[0].name: expected a string, found true or false; put it in quotes"),
        (
            "clusters: [{name: a, cluster: {server: true}}]",
            "clusters[0].cluster.server: expected a string, found true or false; put it in quotes",
        ),
        (
            "clusters: [{name: a, cluster: {insecure-skip-tls-verify: 'yes'}}]",
            "clusters[0].cluster.insecure-skip-tls-verify: expected true or false, found a string",
        ),
        ("kind: Pod", 'it is a "Pod"; expected the kind "Config"'),
    ],
)
def test_wrong_type_is_named_with_the_path_of_the_key(text: str, problem: str) -> None:
    assert failure_of(text) == problem


def test_repr_of_a_document_shows_no_secret() -> None:
    assert SECRET not in repr(Kubeconfig.from_text(COMPLETE))
