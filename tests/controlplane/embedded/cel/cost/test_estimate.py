"""The worst cost of a rule is what cel-go estimates."""

from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.cel.cost.estimate import worst_cost
from kubewright.controlplane.embedded.cel.cost.extent import Extent
from kubewright.controlplane.embedded.cel.declarations import declared
from kubewright.controlplane.embedded.cel.expressions import checked

COSTS = [
    ("self.names.map(x, x + 'a').all(y, y.startsWith('b'))", 244),
    ("self.names.filter(x, x.size() > 1).map(y, y).join(',') == 'a'", 1844674407370955579),
    ("self.names.exists_one(x, x == self.text)", 94),
    ("self.counts.all(k, k.startsWith(self.text))", 73),
    ("self.counts.all(k, self.counts[k] > 1)", 43),
    ("self.counts.all(k, v, v > 1 && k == 'a')", 33),
    ("self.names.all(i, v, v == self.text)", 103),
    ("self.counts.transformMap(k, v, v + 1).all(k, k == 'a')", 79),
    ("self.counts.transformMap(k, v, v > 1, v + 1).exists(k, k == 'a')", 94),
    ("self.counts.transformList(k, v, k).all(x, x == 'b')", 99),
    ("self.counts.transformMapEntry(k, v, {k: v}).size() == 1", 205),
    ("self.parts.all(e, e.name == 'a' || e.size > 1)", 93),
    ("self.parts.map(e, e.name).all(x, x == 'a')", 194),
    ("self.parts.map(e, e.size > 1, e.name).exists(x, x.contains('zz'))", 234),
    ("self.parts.sortBy(e, e.name)[0].name == 'a'", 389),
    ("self.parts.sortBy(e, e.size)[0].size == 1", 379),
    ("self.names.sort()[0] == 'a'", 224),
    ("self.names.distinct().size() == self.names.size()", 218),
    ("self.names.reverse()[0] == 'a'", 24),
    ("self.names.slice(0, 2).all(x, x == 'a')", 24),
    ("lists.range(3).all(i, self.names[i] == 'a')", 39),
    ("[self.names, self.names].flatten().size() == 1", 29),
    ("sets.contains(self.names, ['a', 'b'])", 33),
    ("sets.equivalent(self.names, self.names)", 205),
    ("self.text.replace('a', 'bb').size() == 1", 20),
    ("self.text.replace('aa', 'b').contains('z')", 26),
    ("self.text.split(',').all(x, x.size() > 1)", 499),
    ("self.text.split(',', 3).all(x, x.size() > 1)", 37),
    ("self.text.matches('^[a-z]+$')", 20),
    ("self.names.all(x, x.matches('^[a-z]+$'))", 143),
    ("self.?part.?name.orValue('a') == 'b'", 5),
    ("self.?part.optMap(x, x.name).orValue('a') == 'b'", 21),
    ("self.?number.optMap(x, x + 1).orValue(1) == 2", 21),
    ("self.?part.optFlatMap(x, x.?size).orValue(1) == 2", 20),
    ("(self.flag ? self.names : ['a']).all(x, x == 'b')", 53),
    ("(self.names + ['abc']).all(x, x == 'b')", 58),
    ("self.names[0] == 'a' && self.parts[0].name == 'b'", 9),
    ("self.either == 'a'", 3),
    ("dyn(self.names).all(x, x == 'a')", 44),
    ("dyn(self.text) == 'b'", 4),
    ("string(self.time) == 'a'", 4),
    ("self.time > timestamp('2020-01-01T00:00:00Z')", 4),
    ("bytes(self.text) == b'abc'", 11),
    ("'%s'.format([self.text]) == 'b'", 14),
    ("self.text.format(['x']) == 'b'", 21),
    ("strings.quote(self.text) == 'b'", 11),
    ("isIP(self.text) && ip(self.text).family() == 4", 22),
    ("cidr('10.0.0.0/8').containsIP(self.text)", 15),
    ("cidr('10.0.0.0/8').containsCIDR(self.text)", 18),
    ("ip.isCanonical(self.text)", 18),
    ("url(self.text).getHost() == 'a'", 12),
    ("url(self.text) == url(self.text)", 28),
    ("quantity(self.text) == quantity('1')", 12),
    ("format.dns1123Label().validate(self.text).hasValue()", 260),
    ("semver(self.text) == semver('1.0.0')", 12),
    ("self.text in ['a', 'b'] && 'k' in self.counts", 17),
    ("self.text in self.names", 14),
    ("{'a': self.text}.all(k, k == 'b')", 37),
    ("[[1,2],[3]].all(x, x.all(y, y > 1))", 41),
    ("self.names.all(x, self.names.all(y, x == y))", 963),
    ("self.names.indexOf('a') == 1 && self.text.indexOf('b') == 1", 64),
    ("self.names.isSorted() && [1,2].sum() == 3", 65),
    ("self.names.join(',').size() == 3", 45),
    ("self.part == self.part", 4),
    ("self.text.find('a+') == 'b' && self.text.findAll('a').size() == 2", 25),
    ("type(self.number) == int", 4),
    ("self.names.map(x, [x]).all(y, y[0] == 'a')", 304),
    ("oldSelf.text == self.text", 12),
    ("self.names == oldSelf.names", 5),
    ("size(self.names) > 1 ? self.text == 'b' : self.names[0] == 'c'", 8),
    ("self.text.substring(1).upperAscii() == 'B'", 19),
    ("self.text + self.text == 'b'", 21),
    ("self.names.exists(x, x.startsWith(self.text))", 153),
    ("has(self.part) && has(self.part.name)", 3),
    ("self.names.all(x, x in self.counts)", 73),
    ("self.names.first().orValue('a') == 'b'", 5),
]


@pytest.mark.parametrize(("rule", "cost"), COSTS)
def test_worst_cost(rule: str, cost: int, spec_schema: JSONObject) -> None:
    type_ = declared(spec_schema, resource=False)
    assert type_ is not None
    tree = checked(rule, {"self": type_, "oldSelf": type_}).tree
    assert worst_cost(tree, Extent(spec_schema)) == cost


@pytest.mark.parametrize(
    ("schema", "maximum"),
    [
        ({"type": "string"}, 3145726),
        ({"type": "string", "maxLength": 10}, 40),
        ({"type": "string", "enum": ["a", "abc"]}, 3),
        ({"type": "string", "format": "date-time"}, 32),
        ({"type": "array", "items": {"type": "integer"}}, 1572863),
        ({"type": "array", "maxItems": 7, "items": {"type": "integer"}}, 7),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, 314572),
        ({"type": "integer"}, 0),
    ],
)
def test_the_largest_size_is_a_limit_or_what_fits_into_a_request(schema: JSONObject, maximum: int) -> None:
    assert Extent(schema).maximum == maximum


def test_required_fields_make_fewer_objects_fit_into_a_request() -> None:
    schema: JSONObject = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert Extent(schema).cardinality == 1048576
    assert Extent(schema | {"required": ["name"]}).cardinality == 241979
