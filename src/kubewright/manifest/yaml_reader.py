"""YAML as Kubernetes reads it, within bounds: the one reader of kubeconfigs, manifests and bodies of requests.

libyaml emits a document's events one by one, however deep they nest; its composer recurses, and a few kilobytes of
brackets overflow the stack of the process. So nodes are composed here, without recursion, and what a document may
demand of its reader is limited as in Go's YAML: 10,000 levels, and so many values by way of aliases as are in
proportion to those that are written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias, cast

import yaml

from kubewright.manifest.yaml_values import PLAIN

MAX_DEPTH: Final = 10_000
# libyaml goes through all open brackets at each value between them: with thousands open, some 50 KB take many seconds.
_MAX_BRACKETS_PASSED: Final = 2 * MAX_DEPTH**2  # twice what so many levels take by themselves

# Go's bounds: documents of few values may consist of aliases almost entirely, large ones to a tenth.
_FREE_ALIASES: Final = 100
_FREE_VALUES: Final = 1000
_SMALL, _LARGE = 400_000, 4_000_000
_SHARE_OF_SMALL, _SHARE_OF_LARGE = 0.99, 0.10

_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)

_Start: TypeAlias = yaml.SequenceStartEvent | yaml.MappingStartEvent


def compose(loader: yaml.CSafeLoader, text: str | bytes) -> yaml.Node | None:
    """The next document of a loader's `text`, None when there is none. Raises `yaml.MarkedYAMLError`, never recurses.

    `value_of` makes values of the nodes: plain scalars without a tag have the tag `PLAIN`.
    """
    composer = _Composer(text)
    for event in _events(loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return composer.root
        composer.take(event)
    return None


def _events(loader: yaml.CSafeLoader) -> Iterator[yaml.Event]:
    while (event := loader.get_event()) is not None:
        yield event


# libyaml's marks are PyYAML's, only not in its stubs.
def _start(event: yaml.Event) -> yaml.Mark | None:
    return cast("yaml.Mark | None", event.start_mark)


def _end(event: yaml.Event) -> yaml.Mark | None:
    return cast("yaml.Mark | None", event.end_mark)


class _Open(NamedTuple):
    """A collection whose end has not come, its anchor, and how many values had been counted before it."""

    node: yaml.CollectionNode
    anchor: str | None
    flow: bool
    before: int


class _Anchored(NamedTuple):
    """A node that can be referred to, and how many values it stands for; None while it is open."""

    node: yaml.Node
    values: int | None


class _Composer:
    def __init__(self, text: str | bytes) -> None:
        self._text = text.removeprefix("\ufeff") if isinstance(text, str) else text
        self.root: yaml.Node | None = None
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        # Of every open mapping, the key whose value is next.
        self._keys: list[yaml.Node | None] = []
        self._depth = {True: 0, False: 0}
        self._brackets_passed = 0
        # As Go counts: the document is a value, too, and so is an alias besides what it stands for.
        self._values = 1
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        self._brackets_passed += self._depth[True]
        if self._brackets_passed > _MAX_BRACKETS_PASSED:
            raise yaml.scanner.ScannerError(None, None, "too many values nest too deeply", _start(event))
        if isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            plain = PLAIN if event.implicit[0] else yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
            tag = plain if event.tag is None else event.tag
            if event.style == '"' and "/" in event.value:
                self._check_escapes(event)
            node = yaml.ScalarNode(tag, event.value, _start(event), _end(event), event.style)
            self._count(1)
            if event.anchor is not None:
                self._anchors[event.anchor] = _Anchored(node, 1)
            self._add(node)
        elif isinstance(event, _Start):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)

    def _check_escapes(self, event: yaml.ScalarEvent) -> None:
        """Refuse an escaped slash, which JSON and libyaml know, and Go's YAML does not."""
        start, end = _start(event), _end(event)
        if start is None or end is None:
            return
        if isinstance(self._text, bytes):
            self._text = self._text.decode(errors="replace").removeprefix("\ufeff")
        written = self._text[start.index : end.index]
        for escape in _ESCAPE.finditer(written):
            if escape[0] == r"\/":
                lines = written[: escape.start()].split("\n")
                column = len(lines[-1]) + (start.column if len(lines) == 1 else 0)
                mark = yaml.Mark(start.name, start.index + escape.start(), start.line + len(lines) - 1, column, None, 0)
                raise yaml.scanner.ScannerError(
                    "while parsing a quoted scalar", start, "found unknown escape character", mark
                )

    def _alias(self, event: yaml.AliasEvent) -> None:
        found = self._anchors.get(event.anchor or "")
        if found is None:
            raise yaml.composer.ComposerError(None, None, "found undefined alias", _start(event))
        if found.values is None:
            raise yaml.composer.ComposerError(
                None, None, f"anchor '{event.anchor}' value contains itself", _start(event)
            )
        self._aliased += found.values
        self._count(1 + found.values)
        self._add(found.node)

    def _begin(self, event: _Start) -> None:
        flow = bool(event.flow_style)
        self._depth[flow] += 1
        if self._depth[flow] > MAX_DEPTH:
            raise yaml.scanner.ScannerError(None, None, f"exceeded max depth of {MAX_DEPTH}", _start(event))
        kind = yaml.SequenceNode if isinstance(event, yaml.SequenceStartEvent) else yaml.MappingNode
        node = kind(event.tag or "!", [], _start(event), None, event.flow_style)
        self._add(node)
        self._open.append(_Open(node, event.anchor, flow, self._values))
        self._keys.append(None)
        self._count(1)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(node, None)

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        closed = self._open.pop()
        self._keys.pop()
        self._depth[closed.flow] -= 1
        closed.node.end_mark = _end(event)
        if closed.anchor is not None:
            self._anchors[closed.anchor] = _Anchored(closed.node, self._values - closed.before)

    def _add(self, node: yaml.Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1].node
        if isinstance(parent, yaml.SequenceNode):
            parent.value.append(node)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = node
        else:
            parent.value.append((key, node))
            self._keys[-1] = None

    def _count(self, values: int) -> None:
        self._values += values
        if self._aliased <= _FREE_ALIASES or self._values <= _FREE_VALUES:
            return
        grown = min(max((self._values - _SMALL) / (_LARGE - _SMALL), 0), 1)
        if self._aliased > self._values * (_SHARE_OF_SMALL - grown * (_SHARE_OF_SMALL - _SHARE_OF_LARGE)):
            raise yaml.composer.ComposerError(None, None, "document contains excessive aliasing", None)
