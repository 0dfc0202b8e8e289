"""The target of a request, parsed from path and query, as the authorizer and the handlers see it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer, quoted
from kubewright.controlplane.embedded.apimachinery.selectors import parse_field_selector
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get", "DELETE": "delete"}
# What follows a namespace's name is a resource in it, unless it is one of the namespace's own subresources.
_OF_NAMESPACES = frozenset(("status", "finalize"))
_INTEGER = re.compile("[+-]?[0-9]+")
_UNREADABLE = re.compile(";|%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Target:
    """The object or collection a path names; `resource` is empty for every other path."""

    path: str
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    rest: str = ""
    """What follows the subresource, as in `pods/x/proxy/a/b`."""


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """The query of a request. Of a parameter that is given twice, the first counts, as in Go."""

    values: Mapping[str, str] = field(default_factory=dict)
    repeated: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The value of a parameter; empty when it is not given."""
        return self.values.get(name, "")

    def flag(self, name: str) -> bool:
        """A boolean parameter: given without a value, or with anything but "false" and "0", it is true."""
        value = self.values.get(name)
        return value is not None and value.lower() not in ("false", "0")

    def number(self, name: str) -> int | None:
        """A numeric parameter; None when it is not given."""
        value = self.values.get(name, "")
        if not value:
            return None
        if not _INTEGER.fullmatch(value):
            raise bad_request(f"strconv.ParseInt: parsing {quoted(value)}: invalid syntax")
        if not -(2**63) <= (number := bounded_integer(value)) < 2**63:
            raise bad_request(f"strconv.ParseInt: parsing {quoted(value)}: value out of range")
        return number

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored. That its value is `All` has been checked with the other options."""
        return bool(self.repeated.get("dryRun"))


def parse_query(text: str) -> QueryParameters:
    """A query string, percent-decoded."""
    if not text:
        return QueryParameters()
    # As in Go, what cannot be decoded is skipped.
    readable = "&".join(pair for pair in text.split("&") if not _UNREADABLE.search(pair))
    pairs = parse_qsl(readable, keep_blank_values=True)
    repeated: dict[str, list[str]] = {}
    for name, value in pairs:
        repeated.setdefault(name, []).append(value)
    return QueryParameters({name: values[0] for name, values in repeated.items()}, repeated)


def parse_target(method: str, raw_path: str, query: QueryParameters) -> Target:
    """Take a path apart. Anything that is not below `/api/` or `/apis/` is no resource."""
    verb = _VERBS.get(method, method.lower())
    path = unquote(raw_path)
    # As in Go, an escaped slash is one.
    steps = path.strip("/").split("/")
    if raw_path.startswith("//"):
        return Target(path, verb)
    if len(steps) >= 3 and steps[0] == "api":
        group, version, steps = "", steps[1], steps[2:]
    elif len(steps) >= 4 and steps[0] == "apis":
        group, version, steps = steps[1], steps[2], steps[3:]
    else:
        return Target(path, verb)
    # The old form of `?watch`; it may name an object too.
    is_watch = steps[0] == "watch" and len(steps) > 1
    if is_watch:
        steps = steps[1:]
        verb = "watch" if verb == "get" else verb
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 1:
        namespace = steps[1]
        if len(steps) > 2 and steps[2] not in _OF_NAMESPACES:
            steps = steps[2:]
    resource, name, subresource = (*steps[:3], "", "", "")[:3]
    if not name and not is_watch:
        if verb == "get":
            verb = "watch" if query.flag("watch") else "list"
        elif verb == "delete":
            verb = "deletecollection"
    return Target(path, verb, group, version, resource, subresource, namespace, name, "/".join(steps[3:]))


def requested_name(target: Target, query: QueryParameters) -> str:
    """A list or watch of one object by its name is as good as naming it: rules for single names allow it."""
    if target.verb not in ("list", "watch") or target.name:
        return target.name
    try:
        return parse_field_selector(query.text("fieldSelector")).exact("metadata.name") or ""
    except StatusError:
        return ""  # refused later, with its reason
