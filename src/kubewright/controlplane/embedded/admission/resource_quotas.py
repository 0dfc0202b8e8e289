"""ResourceQuota: what is created counts, and what would exceed a quota is refused.

The usage in a quota's status grows with the write that it is for, in the same step. It shrinks by the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubewright.api.markers import JSONObject
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.admission.pods import displayed_name, is_resize
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden
from kubewright.controlplane.embedded.builtins.quota import is_in_scopes, is_terminating, tracked, unnamed, usage
from kubewright.controlplane.embedded.builtins.values import quantity
from kubewright.controlplane.embedded.rest.call import Call

_GROWING = frozenset((("", "services"), ("", "persistentvolumeclaims")))
_IGNORED = "events"
_ZERO = Quantity(0)


def charge_quotas(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    """Add what a write needs to the usage of the quotas of its namespace. Raises the 403 when one is exceeded."""
    if not call.resource.namespaced or call.resource.plural == _IGNORED:
        return
    if call.target.subresource and not is_resize(call):
        return
    entries = call.services.store.range(f"/core/resourcequotas/{call.target.namespace}/").entries
    if not entries or not _may_grow(call, new, old):
        return
    charged = [(entry, used) for entry in entries if (used := _new_usage(call, entry.value, new, old))]
    if call.query.dry_run or (old is None and _is_taken(call, new)):
        return
    for entry, used in charged:
        value = copied_object(entry.value)
        inside(value, "status", "used").update({name: str(amount) for name, amount in used.items()})
        call.services.store.update(entry.key, value, expected=entry.revision)


def _may_grow(call: Call, new: JSONObject, old: JSONObject | None) -> bool:
    resource = call.resource.gvk.group, call.resource.plural
    if old is None or resource in _GROWING:
        return True
    # A pod with a deadline may be in other scopes than before.
    return is_resize(call) or (resource == ("", "pods") and is_terminating(old) != is_terminating(new))


def _is_taken(call: Call, new: JSONObject) -> bool:
    """Whether the name is in use: the write fails, and needs nothing."""
    key = call.resource.key(text(new, "metadata", "namespace"), text(new, "metadata", "name"))
    return call.services.store.get(key) is not None


def _new_usage(call: Call, quota: JSONObject, new: JSONObject, old: JSONObject | None) -> dict[str, Quantity]:
    """The usage of a quota that the write changes."""
    group, plural = call.resource.gvk.group, call.resource.plural
    hard, used = mapping(quota, "status", "hard"), mapping(quota, "status", "used")
    names = tracked(hard, group, plural)
    if not names or not is_in_scopes(quota, new, group, plural):
        return {}
    name = text(quota, "metadata", "name")
    if plural == "pods" and not group and (missing := unnamed(new, names)):
        raise _refused(call, new, f"failed quota: {name}: {missing}")
    if any(each not in used for each in names):
        raise _refused(call, new, f"status unknown for quota: {name}, resources: {','.join(names)}")
    now = call.services.moment()
    wanted = usage(new, group, plural, now)
    before = usage(old, group, plural, now) if old is not None and is_in_scopes(quota, old, group, plural) else {}
    more = {each: amount - before.get(each, _ZERO) for each, amount in wanted.items() if each in names}
    more = {each: amount for each, amount in more.items() if amount > _ZERO}
    total = {each: quantity(used[each]) + amount for each, amount in more.items()}
    exceeded = [each for each in sorted(total) if total[each] > quantity(hard[each])]
    if exceeded:
        requested = _shown(exceeded, more)
        spent, limit = _shown(exceeded, _amounts(used)), _shown(exceeded, _amounts(hard))
        raise _refused(call, new, f"exceeded quota: {name}, requested: {requested}, used: {spent}, limited: {limit}")
    return total


def _refused(call: Call, obj: JSONObject, why: str) -> StatusError:
    return forbidden(call.resource.plural, call.resource.gvk.group, displayed_name(obj), why)


def _amounts(stored: JSONObject) -> dict[str, Quantity]:
    return {name: quantity(amount) for name, amount in stored.items()}


def _shown(names: Iterable[str], amounts: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
