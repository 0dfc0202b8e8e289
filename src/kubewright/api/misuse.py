"""Messages for wrong calls: Python's own, and then the fix. Imported only when one is needed.

The verbs of a client are called for every object, and must not pay for a wrapper that explains their errors. So errors
are explained where they pass anyway: when a client is closed by one, when a reconcile or a program fails, in tests.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable
from types import FrameType

from msgspec import Struct

from kubewright.api.model import Model
from kubewright.api.naming import python_name

_CALL = re.compile(
    r"(?P<function>[\w.]+)\(\) (?:got an unexpected keyword argument '(?P<keyword>\w+)'"
    r"|takes .+ (?:was|were) given|missing \d+ required .+)"
)
_TAKEN = re.compile(r" (\d+) positional arguments? but ")
_QUOTED = re.compile(r"'(\w+)'")
_NOT_SUBSCRIPTABLE = re.compile(r"'(\w+)' object is not subscriptable")
_NOT_AWAITED = ("'coroutine' object", "argument of type 'coroutine'", "cannot unpack non-iterable coroutine")

_PARTS = ("metadata", "spec", "status", "namespace")
_COMMON_PARTS = ("name", "labels")
"""Attributes of the user's own structures as well: of an object of Kubernetes only where kubewright reads them."""

_VERBS = {
    "read": "get(Kind, name, namespace=...)",
    "get": "get(Kind, name, namespace=...)",
    "list": "list(Kind, namespace=...)",
    "watch": "watch(Kind, namespace=...)",
    "create": "create(obj)",
    "patch": "patch(obj)",
    "replace": "update(obj)",
    "delete": "delete(Kind, name, namespace=...)",
}
_GENERATED = re.compile(rf"({'|'.join(_VERBS)})_[a-z_]+")
"""The methods of the official Python client, such as `read_namespaced_pod`."""

_WORDS = {
    "label_selector": "labels",
    "selector": "labels",
    "matching_labels": "labels",
    "field_selector": "fields",
    "ns": "namespace",
    "namespaces": "namespace",
    "in_namespace": "namespace",
    "limit": "page_size",
    "grace_period_seconds": "grace_period",
    "propagation_policy": "propagation",
    "ignore_not_found": "missing_ok",
    "timeout_seconds": "timeout",
    "manager": "field_manager",
    "owner": "field_manager",
    "predicate": "where",
    "predicates": "where",
    "when": "where",
    "filter": "where",
    "max_concurrent_reconciles": "workers",
    "concurrency": "workers",
    "rate_limiter": "limiter",
    "retries": "max_attempts",
    "max_retries": "max_attempts",
    "interval": "resync",
    "resync_period": "resync",
    "sync_period": "resync",
    "cache_sync_timeout": "sync_timeout",
    "crds": "definitions",
    "crd": "definitions",
    "metrics_bind_address": "metrics_address",
    "health_probe_bind_address": "health_address",
    "pprof_bind_address": "debug_address",
    "metrics_port": "metrics_address",
    "graceful_shutdown_timeout": "grace",
    "printer_columns": "columns",
    "print_columns": "columns",
    "shortname": "short_names",
    "shortnames": "short_names",
    "cluster_scoped": "namespaced",
    "scope": "namespaced",
}
"""Keywords of client-go, kopf, kubebuilder and the official Python client, and what they are called here."""

_CALLS = {
    "resource": 'write @resource("group/version"), and the rest by name',
    "controller_for": "write controller_for(manager, Kind, name=...).complete(reconciler)",
    "watches": "write watches(Kind, mapped(function))",
    "resource.group": 'write @resource("group/version")',
    "resource.version": 'write @resource("group/version")',
    "resource.scope": "write namespaced=False for a kind that is cluster-scoped",
    "resource.cluster_scoped": "write namespaced=False for a kind that is cluster-scoped",
    "Client.kubeconfig": "write Client(Config.load(kubeconfig=...))",
    "Client.context": "write Client(Config.load(context=...))",
    "Client.namespace": "write Client(...).in_namespace(...)",
    "Client.server": "write Client(Config(server=...))",
    "Client.host": "write Client(Config(server=...))",
    "Client.token": "write Client(Config(...)), which has the credentials",
    "Client.verify_ssl": "write Client(Config(...)), which has what TLS needs",
    "Manager.namespace": "write namespaces=[...]",
    "Manager.leader_election": 'write election=LeaderElection(client, "name-of-the-lease")',
    "Manager.leader_elect": 'write election=LeaderElection(client, "name-of-the-lease")',
    "controller_for.reconciler": "write controller_for(manager, Kind).complete(reconciler)",
    "controller_for.owns": "write controller_for(manager, Kind).owns(Child)",
    "create.namespace": "an object names its namespace itself: write metadata=ObjectMeta(namespace=...)",
    "update.namespace": "an object names its namespace itself: write metadata=ObjectMeta(namespace=...)",
    "apply.namespace": "an object names its namespace itself: write metadata=ObjectMeta(namespace=...)",
    "run.namespace": "the flag --namespace has it",
    "run.namespaces": "the flag --namespace has them",
    "run.leader_elect": "the flag --leader-elect has it",
    "run.election": "the flag --leader-elect has it",
    "run.standalone": "leave it out: without --leader-elect an operator does not wait for others",
    "run.clusterwide": "leave it out: without --namespace an operator watches all of them",
    "Predicate.__call__": "a predicate is given as it is, without parentheses: where=generation_changed",
    "Field.default": "Field is for waiting: write a default after the annotation, as in size: int = 1",
    "Result.after": "write requeue_after=",
    "Result.delay": "write requeue_after=",
    "field": 'it declares a field of a model: for waiting write Field("status.phase")',
}
"""What to write instead, by function and, after the dot, keyword."""

_ATTRIBUTES = {
    "Client.update_status": "write client.status.update(obj)",
    "Client.patch_status": "write client.status.patch(obj)",
    "Client.replace_status": "write client.status.update(obj)",
    "Client.replace": "write client.update(obj)",
    "Client.create_or_update": "write client.apply(obj)",
    "Client.create_or_patch": "write client.apply(obj)",
    "Client.delete_all_of": "write client.delete_all(Kind, namespace=...)",
    "Client.log": "write client.logs(pod)",
    "Client.wait": "write client.wait_for(obj, ready)",
    "Client.read": "write client.get(Kind, name, namespace=...)",
    "Client.server_side_apply": "write client.apply(obj)",
    "Client.close": "write await client.aclose(), or async with Client() as client",
    "Manager.start": "write await manager.run(), or async with manager.running()",
    "Manager.get_client": "write manager.client",
    "Manager.get_cache": "write manager.cache",
    "Manager.get_api_reader": "write manager.live",
    "Manager.get_event_recorder_for": 'write manager.recorder("name")',
    "Manager.events": 'write manager.recorder("name")',
    "Manager.add_healthz_check": "write manager.add_health_check(name, check)",
    "Manager.add_readyz_check": "write manager.add_ready_check(name, check)",
    "Builder.for_": "the kind is given to controller_for(manager, Kind)",
    "Builder.named": "write controller_for(manager, Kind, name=...)",
    "Builder.with_options": "options are keywords of controller_for(manager, Kind, workers=...)",
    "Builder.with_event_filter": "write controller_for(manager, Kind, where=...)",
    "Builder.build": "write .complete(reconciler)",
    "Builder.watches_raw_source": "write .source(source)",
    "EventRecorder.event": "write .normal(obj, reason, note) or .warning(obj, reason, note)",
    "EventRecorder.eventf": "write .normal(obj, reason, note) or .warning(obj, reason, note)",
    "EventRecorder.info": "write .normal(obj, reason, note)",
    "Event.metadata": "an event is no object: write event.key, event.new_object or event.old_object",
    "Event.object": "an event has two: write event.new_object or event.old_object",
    "Event.obj": "an event has two: write event.new_object or event.old_object",
    "ControlPlane.get_client": "write cluster.client()",
}
"""What to write instead, by class and attribute."""


def explain(error: BaseException) -> None:
    """Add the fix to the message of an error that Python raised for a wrong use of kubewright, and to no other."""
    fix = None
    if type(error) is AttributeError:  # and no class of the user's, which has arguments of its own
        fix = _attribute_fix(error.obj, error.name or "", _frame(error))
    elif type(error) is TypeError:
        fix = _call_fix(str(error), _frame(error))
    if fix is not None and fix not in str(error):
        error.args = (f"{error}: {fix}",)


def _frame(error: BaseException) -> FrameType | None:
    """Where the error was raised: for a call that does not fit, that is where it is written."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        found, traceback = traceback.tb_frame, traceback.tb_next
    return found


def _call_fix(message: str, frame: FrameType | None) -> str | None:
    if message.startswith(_NOT_AWAITED):
        return "write await before the call"
    subscript = _NOT_SUBSCRIPTABLE.match(message)
    if subscript is not None:
        is_model = subscript[1] in (each.__name__ for each in _all_structures(Model))
        return "its fields are attributes: write .metadata instead of ['metadata']" if is_model else None
    if message.startswith("a coroutine was expected, got None"):
        return "what a manager runs is async: write async def"
    if message.startswith("'_AsyncGeneratorContextManager' object does not support the context"):
        return "write async with"
    if message == "exceptions must derive from BaseException":
        return "only errors are raised; a Result is returned, and so is a list of FieldCause"
    if message.startswith("'async for' requires") and message.endswith("got list"):
        return "write for instead of async for, or leave out the await"
    if message.startswith("If a type union contains multiple Struct types"):
        return 'write class FileSource(Model, tag="File") for each of them'
    if message.startswith("Unexpected keyword argument"):
        return _structure_fix(message.rpartition(" ")[2].strip("'"), frame)
    call = _CALL.match(message)
    function = _find(call["function"]) if call is not None else None
    if call is None or function is None or not _is_meant(function, message, frame):
        return None
    *owners, name = call["function"].split(".")
    shown = owners[-1] if name == "__init__" and owners else name
    keyword = call["keyword"]
    known = _CALLS.get(f"{shown}.{keyword}") if keyword else _CALLS.get(call["function"], _CALLS.get(shown))
    if known is not None or keyword is None:
        return known or f"write {shown}({_usage(function)})"
    parameters = [each for each in inspect.signature(function).parameters if each != "self"]
    if _WORDS.get(keyword) in parameters:
        return f"write {_WORDS[keyword]}="
    close = difflib.get_close_matches(keyword, parameters, n=1)
    if close:
        return f"write {close[0]}="
    return f"it takes {', '.join(parameters)}"


def _structure_fix(keyword: str, frame: FrameType | None) -> str | None:
    """The fix for an argument of a structure that is no model, whose message does not name the class."""
    code = frame.f_code if frame is not None else None
    called = {*code.co_names, *code.co_varnames, *code.co_freevars} if code is not None else set()
    meant = [cls for cls in _all_structures(Struct) if cls.__name__ in called and _is_ours(cls)]
    meant = [cls for cls in meant if not issubclass(cls, Model) and keyword not in cls.__struct_fields__]
    if len(meant) != 1:
        return None
    name, fields = meant[0].__name__, meant[0].__struct_fields__
    close = difflib.get_close_matches(python_name(keyword), fields, n=1)
    return _CALLS.get(f"{name}.{keyword}", f"write {close[0]}=" if close else f"{name} takes {', '.join(fields)}")


def _find(qualname: str) -> Callable[..., object] | None:
    """The function of kubewright that Python names in its message."""
    if qualname == "field":
        from msgspec import field

        return field
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "kubewright":
            found: object = module
            for part in qualname.split("."):
                found = vars(found).get(part) if isinstance(found, type | type(module)) else None
            found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            if inspect.isfunction(found) and _is_ours(found):
                return found
    return None


def _is_meant(function: Callable[..., object], message: str, frame: FrameType | None) -> bool:
    """Whether a message is of this function: it names no module, and the user may have a `decode` or a `Client`."""
    parameters = inspect.signature(function).parameters
    positional = [each for each in parameters.values() if each.kind <= each.POSITIONAL_OR_KEYWORD]
    taken = _TAKEN.search(message)
    if taken is not None and int(taken[1]) != len(positional):
        return False
    if " missing " in message and not set(_QUOTED.findall(message)) <= parameters.keys():
        return False
    if "." in function.__qualname__:
        return True
    variables = {**frame.f_globals, **frame.f_locals} if frame is not None else {}
    return any(_leads_to(value, function) for value in variables.values())


def _leads_to(value: object, function: Callable[..., object]) -> bool:
    if inspect.isfunction(value):
        return inspect.unwrap(value) is inspect.unwrap(function)
    return inspect.ismodule(value) and _is_ours(value)


def _is_ours(value: object) -> bool:
    name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in ("kubewright", "msgspec")


def _usage(function: Callable[..., object]) -> str:
    """How it is called: what must be given, and the namespace where there is one."""
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            arguments += [f"{name}=..."] if parameter.default is parameter.empty or name == "namespace" else []
        elif name != "self" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            arguments.append(name)
    return ", ".join(arguments)


def _attribute_fix(owner: object, attribute: str, frame: FrameType | None) -> str | None:
    if inspect.iscoroutine(owner):
        return f"{owner.__qualname__}(...) was not awaited: write await before the call"
    if isinstance(owner, list) and attribute == "items" and owner and isinstance(owner[0], Model):
        return "it is the list of the objects itself"
    reader = str(frame.f_globals.get("__name__")) if frame is not None else ""
    is_part = attribute in _PARTS or (attribute in _COMMON_PARTS and reader.startswith("kubewright."))
    if isinstance(owner, dict) and is_part:
        return "a dict is no structure: make one of its class, or all of the object with from_json(Kind, {...})"
    if isinstance(owner, str | tuple) and is_part and attribute in ("namespace", "name"):
        return "write Request(namespace, name) for a key, and metadata=ObjectMeta(name=...) for an object"
    if inspect.isroutine(owner) and str(getattr(owner, "__module__", "")).startswith("kubewright."):
        return f"{owner.__name__} is a method: write {owner.__name__}(...)"
    for cls in type(owner).__mro__:
        known = _ATTRIBUTES.get(f"{cls.__name__}.{attribute}") if cls.__module__.startswith("kubewright.") else None
        if known is not None:
            return known
        if cls.__name__ == "Client" and (verb := _GENERATED.fullmatch(attribute)) is not None:
            return f"write client.{_VERBS[verb[1]]}"
    if not type(owner).__module__.startswith("kubewright.") or isinstance(owner, Model):
        return None
    close = difflib.get_close_matches(attribute, [each for each in dir(owner) if not each.startswith("_")], n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _all_structures(cls: type[Struct]) -> set[type[Struct]]:
    return {cls}.union(*map(_all_structures, cls.__subclasses__()))
