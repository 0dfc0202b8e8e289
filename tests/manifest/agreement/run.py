"""Has a server judge many values of many types at once, and compares its verdicts with those of the types."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from types import new_class
from typing import Any, NamedTuple, cast

from tests.manifest.agreement.server_only import Undecided, complaints, is_beyond_python
from tests.manifest.agreement.types import RandomTypes, described, has_built_in, structure
from tests.manifest.agreement.values import Unsatisfiable, spoiled, structure_value

from kubewright.api.codec import decode_model, encode, from_json, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.client import Client
from kubewright.client.errors import BadRequest, Invalid
from kubewright.client.wait import established
from kubewright.manifest.crd import definition_of
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.schema import schema_of

GROUP = "agreement.kubewright.test/v1"
TYPES = 40
"""In one definition: more are fewer definitions, and slower ones."""
VALUES = 4
"""That fit each type. Of each, two more are made that nearly fit."""
DEPTH = 3


@dataclass
class Outcome:
    """What came of a run."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    refused_types: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __iadd__(self, other: Outcome) -> Outcome:
        self.verdicts += other.verdicts
        self.reasons += other.reasons
        self.refused_types += other.refused_types
        self.problems += other.problems
        return self


class Case(NamedTuple):
    """A structure with one field, and values of that structure."""

    holder: type[Model]
    values: list[JSONObject]


async def compare(client: Client, seed: int, count: int = TYPES) -> Outcome:
    """Compare verdicts on the values of so many types, which are those of a seed."""
    outcome, random = Outcome(), Random(seed)
    cases: dict[str, Case] = {}
    while len(cases) < count:
        made = RandomTypes(random, _is_accepted)
        holder = structure({"value": made.field(made.type(DEPTH))})
        try:
            schema_of(holder)
            fitting = [structure_value(random, holder) for _ in range(VALUES)]
        except ManifestError as error:
            outcome.refused_types[re.sub(r'^.*?: |".*?"', "", str(error))] += 1
        except Unsatisfiable:
            outcome.refused_types["no value"] += 1
        else:
            cases[f"f{len(cases)}"] = Case(holder, [*fitting, *(spoiled(random, each) for each in fitting * 2)])
    await _Comparison(client, f"Seed{seed}", cases, outcome).run()
    return outcome


def _is_accepted(annotation: object, value: JSONValue) -> bool:
    try:
        return not [*complaints(annotation, value)]
    except Undecided:
        return False


class _Comparison:
    """The cases of one definition, by the fields of its spec."""

    def __init__(self, client: Client, kind: str, cases: dict[str, Case], outcome: Outcome) -> None:
        self._client = client
        self._kind = kind
        self._untyped = Dynamic.of(GROUP, kind)
        self._cases = cases
        self._outcome = outcome

    async def run(self) -> None:
        definition = await self._define()
        for index in range(max((len(case.values) for case in self._cases.values()), default=0)):
            await self._compare({name: case.values[index] for name, case in self._cases.items()})
        if definition is not None:
            await self._client.delete(definition)

    async def _define(self) -> Any:
        """Create the definition, without the types whose rules are too expensive for the server."""
        while True:
            own: dict[str, tuple[Any, object]] = {
                name: (case.holder | None, None) for name, case in self._cases.items()
            }
            cls: Any = new_class(self._kind, (Resource[structure(own), None],))  # type: ignore[misc]
            try:
                created = await self._client.create(definition_of(resource(GROUP, kind=self._kind)(cls)))
            except Invalid as error:
                expensive = {
                    found[1]
                    for cause in error.status.causes
                    if "cost" in cause.message
                    and (found := re.search(r"properties\[spec\]\.properties\[(f\d+)\]", cause.field))
                }
                if not expensive:
                    self._outcome.problems.append(f"{self._kind}: the definition is refused: {error}")
                    self._cases = {}
                    return None
                for name in expensive:
                    self._outcome.refused_types["the server: estimated rule cost"] += 1
                    del self._cases[name]
            else:
                return await self._client.wait_for(created, established, timeout=60)

    async def _compare(self, given: dict[str, JSONObject]) -> None:
        decoded = {name: _decoded(self._cases[name].holder, value) for name, value in given.items()}
        stored = await self._stored(given)
        sent = {name: cast(JSONObject, to_json(model)) for name, model in decoded.items() if model is not None}
        stored_again = await self._stored(sent)
        for name, value in given.items():
            self._judge(name, value, decoded[name], stored[name], sent.get(name), stored_again.get(name))

    def _judge(
        self,
        name: str,
        value: JSONObject,
        model: Model | None,
        stored: JSONObject | str,
        sent: JSONObject | None,
        stored_again: JSONObject | str | None,
    ) -> None:
        holder = self._cases[name].holder
        try:
            reasons = [*complaints(holder, value)] if model is not None else []
        except Undecided:
            self._outcome.verdicts["undecided"] += 1
            return
        problem = ""
        if model is None:
            if not isinstance(stored, str) and _decoded(holder, stored) is None and not is_beyond_python(holder, value):
                problem = f"the server stores {stored}, the type refuses it: {_complaint(holder, stored)}"
        elif reasons:
            self._outcome.reasons.update(set(reasons))
            if not isinstance(stored, str):
                problem = f"the server stores {stored}, in spite of {reasons}"
        elif isinstance(stored, str):
            problem = f"the type decodes it, the server refuses it: {stored}"
        elif isinstance(stored_again, str):
            problem = f"the server refuses {sent}, which the type makes of it: {stored_again}"
        else:
            problem = _difference(holder, model, stored, cast(JSONObject, sent), cast(JSONObject, stored_again))
        self._outcome.verdicts["accepted" if model is not None and not reasons else "refused"] += 1
        if problem:
            self._outcome.problems.append(f"{self._kind} {name}: {json.dumps(value)}: {problem}\n  {described(holder)}")

    async def _stored(self, values: dict[str, JSONObject]) -> dict[str, JSONObject | str]:
        """What the server would store for each value, or why it refuses it."""
        answers: dict[str, JSONObject | str] = {}
        while rest := {name: value for name, value in values.items() if name not in answers}:
            manifest: JSONValue = {"metadata": {"name": "it", "namespace": "default"}, "spec": {**rest}}
            obj = from_json(self._untyped, manifest)
            try:
                created = await self._client.create(obj, dry_run=True, field_validation="Ignore")
            except (Invalid, BadRequest) as error:
                causes = [f"{cause.field}: {cause.message}" for cause in error.status.causes] or [str(error)]
                refused = {name: cause for cause in causes for name in re.findall(r"\bspec\.(f\d+)\b", cause)[:1]}
                if not refused.keys() & rest.keys():
                    raise
                answers |= {**refused}
            else:
                spec = cast("dict[str, JSONObject]", created.content["spec"])
                answers |= {name: spec[name] for name in rest}
        return answers


def _rounded(value: JSONValue) -> JSONValue:
    """The same with integers beyond 64 bits as servers keep them: as floating point numbers, in either notation."""
    match value:
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case int() if not -(2**63) <= value < 2**63:
            return float(value)
    return value


def _difference(
    holder: type[Model], model: Model, stored: JSONObject, sent: JSONObject, stored_again: JSONObject
) -> str:
    """What differs in meaning between what was given, what is stored and what is sent."""
    read = _decoded(holder, stored)
    if read is None:
        return f"the type refuses {stored}, which the server stores: {_complaint(holder, stored)}"
    built_in = has_built_in(holder)
    if _rounded(to_json(read)) != _rounded(to_json(model)) and not built_in:
        return f"the server stores {stored}, which the type reads as {to_json(read)}, and not as {to_json(model)}"
    lost = _lost(stored, sent, "", zeros=built_in)
    if lost:
        return f"the type loses {', '.join(lost)} of {stored}"
    again = _decoded(holder, stored_again)
    if again is None or (_rounded(to_json(again)) != _rounded(to_json(model)) and not built_in):
        return f"the server makes {stored_again} of {sent}"
    return ""


def _lost(stored: JSONValue, sent: JSONValue, path: str, *, zeros: bool) -> list[str]:
    """The fields and items that are stored and not sent back. Null is absent, and scalars have other spellings.

    With `zeros`, what is zero or empty may be lost.
    """
    if isinstance(stored, dict) and isinstance(sent, dict):
        inner: list[tuple[str, JSONValue, JSONValue]] = [
            (name, value, sent.get(name)) for name, value in stored.items() if value is not None
        ]
    elif isinstance(stored, list) and isinstance(sent, list) and len(stored) == len(sent):
        inner = [(str(index), *pair) for index, pair in enumerate(zip(stored, sent, strict=True))]
    else:
        if zeros and stored in ([], {}, "", 0, False, "TCP"):
            return []
        return [] if sent is not None and type(stored) in (str, int, float, bool) else [path] if stored != sent else []
    return [each for name, one, other in inner for each in _lost(one, other, f"{path}.{name}", zeros=zeros)]


def _decoded(holder: type[Model], value: JSONObject) -> Model | None:
    try:
        return decode_model(holder, encode(value))
    except DecodeError:
        return None


def _complaint(holder: type[Model], value: JSONObject) -> str:
    try:
        decode_model(holder, encode(value))
    except DecodeError as error:
        return str(error)
    return ""
