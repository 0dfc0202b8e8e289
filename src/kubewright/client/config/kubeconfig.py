"""The kubeconfig document: read, merged as kubectl merges, and one context picked out of it.

The entries (certificates, credentials, proxies) are interpreted by `from_kubeconfig`. Every problem is a
`ConfigError` that names the file and the line, or the path of the key, and never quotes a value that may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kubewright.client.errors import ConfigError
from kubewright.client.redacted import Redacted


class ExecVariable(Redacted, frozen=True):
    """One environment variable of an exec plugin."""

    name: str
    value: str | None = None


class Exec(Redacted, frozen=True, rename="camel"):
    """The exec plugin of a user."""

    command: str | None = None
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    api_version: str | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class AuthProvider(Redacted, frozen=True):
    """The legacy plugin of a user; recognised in order to be refused."""

    name: str | None = None


class KubeconfigUser(Redacted, frozen=True, rename="kebab"):
    """The identity to use."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None


class Extension(msgspec.Struct, frozen=True):
    """Something for another program, such as an exec plugin."""

    name: str
    extension: object = None


class KubeconfigCluster(msgspec.Struct, frozen=True, rename="kebab"):
    """Where to connect, and which authorities to trust."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class KubeconfigContext(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace that go together."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: KubeconfigContext | None = None


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    kind: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class KubeconfigSource(msgspec.Struct, frozen=True):
    """One kubeconfig: its name in messages, and the directory its relative paths start from."""

    label: str
    directory: Path

    def error(self, problem: str) -> ConfigError:
        """The error for a problem of this kubeconfig."""
        return ConfigError(f"cannot read the kubeconfig {self.label}: {problem}")

    def resolve(self, path: str) -> Path:
        """The absolute path meant by `path`."""
        return self.directory / path


EntryType = TypeVar("EntryType", KubeconfigCluster, KubeconfigUser, KubeconfigContext)


class Entry(msgspec.Struct, Generic[EntryType], frozen=True):
    """A named cluster, user or context and the kubeconfig it stands in."""

    kind: str
    name: str
    value: EntryType
    source: KubeconfigSource

    @property
    def origin(self) -> str:
        """For messages of others: `of user "ci" in the kubeconfig "prod.yaml"`."""
        return f'of {self.kind} "{self.name}" in the kubeconfig {self.source.label}'

    def error(self, problem: str) -> ConfigError:
        """The error for a problem of this entry."""
        return self.source.error(f'{self.kind} "{self.name}": {problem}')


class Selection(msgspec.Struct, frozen=True):
    """One context and what it names. `user` is None when it names none: requests are then anonymous."""

    context: Entry[KubeconfigContext]
    cluster: Entry[KubeconfigCluster]
    user: Entry[KubeconfigUser] | None


class Kubeconfig(msgspec.Struct):
    """One or several kubeconfigs seen as one: of entries with the same name the first counts, in full."""

    label: str
    clusters: dict[str, Entry[KubeconfigCluster]] = {}
    users: dict[str, Entry[KubeconfigUser]] = {}
    contexts: dict[str, Entry[KubeconfigContext]] = {}
    current_context: str = ""

    @classmethod
    def from_files(cls, paths: Sequence[Path], *, skip_absent: bool = False) -> Kubeconfig:
        """Read and merge files. One that does not exist is an error, unless `skip_absent` and another one exists."""
        merged = cls(label=", ".join(f'"{path}"' for path in paths))
        found = False
        for path in paths:
            source = KubeconfigSource(f'"{path}"', path.absolute().parent)
            try:
                text = path.read_text(encoding="utf-8-sig")
            except FileNotFoundError:
                if skip_absent:
                    continue
                raise source.error("there is no such file") from None
            except OSError as error:
                raise source.error(f"{error.strerror}") from None
            except UnicodeDecodeError:
                raise source.error("it is not UTF-8 text") from None
            found = True
            merged._add(_parse(text, source), source)
        if not found:
            raise KubeconfigSource(merged.label, Path()).error("there is no such file")
        return merged

    @classmethod
    def from_text(cls, text: str) -> Kubeconfig:
        """Read a kubeconfig from text; its relative paths start from the current directory."""
        source = KubeconfigSource("given as text", Path.cwd())
        merged = cls(label=source.label)
        merged._add(_parse(text, source), source)
        return merged

    def select(self, context: str | None) -> Selection:
        """What `context`, or else the current context, names."""
        name = context or self.current_context
        everything = KubeconfigSource(self.label, Path())
        if not (self.contexts or self.clusters or self.users):
            raise everything.error("it is empty; expected clusters, users and contexts")
        if not name:
            raise everything.error(f"it has no current-context; name a context ({_listed('contexts', self.contexts)})")
        if name not in self.contexts:
            role = "context" if context else "current-context"
            raise everything.error(f'the {role} "{name}" is not defined ({_listed("contexts", self.contexts)})')
        chosen = self.contexts[name]
        cluster = _named_by(chosen, "cluster", chosen.value.cluster, self.clusters)
        user = _named_by(chosen, "user", chosen.value.user, self.users) if chosen.value.user else None
        return Selection(chosen, cluster, user)

    def _add(self, document: _Document, source: KubeconfigSource) -> None:
        for cluster in document.clusters or ():
            entry = Entry("cluster", cluster.name, cluster.cluster or KubeconfigCluster(), source)
            self.clusters.setdefault(cluster.name, entry)
        for user in document.users or ():
            self.users.setdefault(user.name, Entry("user", user.name, user.user or KubeconfigUser(), source))
        for context in document.contexts or ():
            self.contexts.setdefault(
                context.name, Entry("context", context.name, context.context or KubeconfigContext(), source)
            )
        self.current_context = self.current_context or document.current_context or ""


def _named_by(
    context: Entry[KubeconfigContext],
    kind: str,
    name: str | None,
    entries: Mapping[str, Entry[EntryType]],
) -> Entry[EntryType]:
    listed = _listed(f"{kind}s", entries)
    if not name:
        raise context.source.error(f'context "{context.name}" names no {kind} ({listed})')
    if name not in entries:
        raise context.source.error(
            f'context "{context.name}" names the {kind} "{name}", which is not defined ({listed})'
        )
    return entries[name]


def _listed(what: str, names: Iterable[str]) -> str:
    return f"{what}: {', '.join(sorted(names)) or 'none'}"


def _parse(text: str, source: KubeconfigSource) -> _Document:
    try:
        content = _plain_values(text)
    except ValueError as error:
        raise source.error(str(error)) from None
    except RecursionError:
        raise source.error("it is nested too deeply") from None
    if content is None:
        return _Document()
    try:
        document = msgspec.convert(content, _Document)
    except msgspec.ValidationError as error:
        raise source.error(_type_problem(str(error))) from None
    if document.kind not in (None, "", "Config"):
        raise source.error(f'it is a "{document.kind}"; expected the kind "Config"')
    return document


def _plain_values(text: str) -> object:
    if text.startswith("{"):
        with suppress(msgspec.DecodeError, UnicodeError):
            return msgspec.json.decode(text)
    # Imported where needed: a parser of YAML takes 10 ms to be ready, and kubeconfigs may be JSON.
    from kubewright.client.config.yaml_text import parse_yaml

    return parse_yaml(text)


_TYPES = {
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "int": "a number",
    "float": "a number",
    "null": "nothing",
}


def _type_problem(message: str) -> str:
    """The message of msgspec (``Expected `str | null`, got `int` - at `$.users[0].name` ``), reworded."""
    what, _, path = message.partition(" - at ")
    where = path.replace("`", "").replace("key in", "a key of").replace("$.", "").replace("$", "the document")
    mismatch = re.fullmatch(r"Expected `([^`]+)`(?:, got `([^`]+)`)?", what)
    if mismatch:
        expected = _TYPES.get(mismatch[1].split(" | ")[0], mismatch[1])
        found = f", found {_TYPES.get(mismatch[2], mismatch[2])}" if mismatch[2] else ""
        hint = "; put it in quotes" if mismatch[1].startswith("str") and mismatch[2] in ("int", "float", "bool") else ""
        return f"{where or 'the document'}: expected {expected}{found}{hint}"
    missing = re.fullmatch(r"Object missing required field `([^`]+)`", what)
    return f'{where}: the field "{missing[1]}" is missing' if missing else f"{where}: {what}"
