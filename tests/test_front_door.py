import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kubewright


def imported_by(statement: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(answer.stdout.split())


def test_importing_kubewright_imports_nothing_heavy() -> None:
    assert not imported_by("import kubewright") & {"asyncio", "ssl", "msgspec", "uvloop", "yaml", "kubewright.api"}


def test_the_client_does_not_import_the_built_in_kinds() -> None:
    heavy = {"kubewright.api.core.v1", "kubewright.controlplane", "cryptography"}
    assert not imported_by("from kubewright import Client, Resource") & heavy


def test_a_client_imports_nothing_that_only_some_of_its_verbs_or_failures_need() -> None:
    rarely = {"random", "kubewright.api.rebase", "kubewright.api.scheme"}
    assert not imported_by("from kubewright import Client") & rarely


def test_importing_a_client_compiles_only_the_expressions_that_every_request_needs() -> None:
    counted = "import re, asyncio, ssl, decimal, httptools, msgspec, ipaddress, pathlib; re.purge()"
    script = f"{counted}; from kubewright import Client; print(len(re._cache))"
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert int(answer.stdout) <= 2


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_does_not_run_during_an_import_and_is_as_before_after_it(collects: bool) -> None:
    script = (
        "import gc, sys, kubewright\n"
        f"gc.enable() if {collects} else gc.disable()\n"
        "seen = {len(sys.modules)}\n"
        "gc.callbacks.append(lambda phase, info: seen.add(len(sys.modules)))\n"
        "kubewright.Client\n"
        f"assert gc.isenabled() is {collects}\n"
        "print(len(seen | {len(sys.modules)}))"
    )
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert int(answer.stdout) == 2, "a collection between the first and the last module"


def test_an_operator_imports_nothing_that_few_need_or_that_is_slow() -> None:
    rarely = {"argparse", "http", "kubewright.api.authorization.v1", "resource", "secrets", "tempfile", "yaml"}
    rarely |= {f"kubewright.client.{name}" for name in ("logs", "strategic_merge", "table", "wait")}
    rarely |= {f"kubewright.manager.{name}" for name in ("core_event_form", "debug", "serving_certificate")}
    slow = {"dataclasses"}  # each one costs as much as ten Structs
    found = imported_by("from kubewright import Client, Manager, Resource")
    assert not found & (rarely | slow)
    own = [name for name in found if name.startswith("kubewright.")]
    assert len(own) <= 140, "each module takes a third of a millisecond: import what few need where it is used"


@pytest.mark.parametrize(
    ("statement", "unneeded"),
    [
        (
            "import ssl; from kubewright.client.config.tls import TLS;"
            "TLS().context(None).wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname='kubernetes')",
            "encodings.idna",
        ),
        ("from kubewright.cache.selection import matcher; matcher('', '')", "kubewright.api.selector_syntax"),
    ],
)
def test_what_every_operator_does_imports_nothing_that_few_need(statement: str, unneeded: str) -> None:
    assert unneeded not in imported_by(statement)


def test_a_kind_of_the_core_group_does_not_import_the_others() -> None:
    """Making the classes of all of them would be a tenth of the start of an operator."""
    found = imported_by("from kubewright.api.core.v1 import ConfigMap")
    assert {name for name in found if name.startswith("kubewright.api.core.")} == {
        "kubewright.api.core.v1",
        "kubewright.api.core.v1.config_map",
    }


def test_an_operator_imports_of_kubernetes_own_kinds_only_leases_and_events() -> None:
    found = imported_by("from kubewright import Manager")
    assert {name for name in found if name.startswith("kubewright.api.") and ".v1" in name} == {
        "kubewright.api.coordination.v1",
        "kubewright.api.core.v1",
        "kubewright.api.core.v1.binding",
        "kubewright.api.core.v1.event",
        "kubewright.api.events.v1",
    }


@pytest.mark.parametrize("name", dir(kubewright))
def test_every_name_at_the_front_door_exists(name: str) -> None:
    assert getattr(kubewright, name) is not None


def test_type_checkers_and_programs_see_the_same_names() -> None:
    tree = ast.parse(Path(kubewright.__file__).read_text())
    checked = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.If)
        for statement in node.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert checked == set(dir(kubewright)) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = kubewright.Nothing  # type: ignore[attr-defined]


PACKAGES = ("api", "cache", "client", "controller", "controlplane", "manager", "manifest", "testing", "webhook")


def test_no_name_at_the_front_door_is_that_of_a_package() -> None:
    """Importing the package would replace the name."""
    packages = {path.name for path in Path(kubewright.__file__).parent.iterdir() if path.is_dir()}
    assert not packages & set(kubewright.__all__)


def test_a_public_name_means_one_thing() -> None:
    homes: dict[str, set[int]] = {}
    for package in PACKAGES:
        module = importlib.import_module(f"kubewright.{package}")
        for name in module.__all__:
            homes.setdefault(name, set()).add(id(getattr(module, name)))
    for name in kubewright.__all__:
        homes.setdefault(name, set()).add(id(getattr(kubewright, name)))
    assert [name for name, found in homes.items() if len(found) > 1] == []


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_no_module_is_hidden_by_something_of_its_name(package: str) -> None:
    module = importlib.import_module(f"kubewright.{package}".removesuffix("."))
    folder = Path(str(module.__file__)).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(module.__all__)


def test_no_package_imports_a_name_that_is_one_of_its_modules() -> None:
    """The module could not be imported from the package any longer."""
    hidden = []
    for file in Path(kubewright.__file__).parent.rglob("__init__.py"):
        modules = {path.stem for path in file.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
        package = "kubewright." + ".".join(file.parent.relative_to(Path(kubewright.__file__).parent).parts)
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.module != package.removesuffix("."):
                names = {alias.asname or alias.name for alias in node.names}
                hidden += [f"{package}.{name}" for name in names & modules]
    assert hidden == []
