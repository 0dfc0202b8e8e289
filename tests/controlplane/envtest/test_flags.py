from __future__ import annotations

import subprocess

import pytest
from tools.generate_kube_apiserver_flags import flags_in_help

from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.envtest.flags import FlagError, known_flags, parse_flags
from kubewright.controlplane.envtest.kube_apiserver import FLAGS

KNOWN = known_flags(["secure-port int", "etcd-servers strings", "allow-privileged", "v Level"])


def test_values_are_given_in_either_way_and_the_last_one_counts() -> None:
    flags = parse_flags(["--secure-port=1", "--secure-port", "2", "--secure_port=3", "-v=4"], KNOWN)
    assert flags.number("secure-port", 6443) == 3
    assert flags.text("v") == "4"
    assert [*flags] == ["secure-port", "v"]


def test_lists_are_given_by_commas_and_by_repetition() -> None:
    assert parse_flags(["--etcd-servers=a,b", "--etcd-servers=c"], KNOWN).texts("etcd-servers") == ["a", "b", "c"]


def test_a_switch_needs_no_value() -> None:
    assert parse_flags(["--allow-privileged"], KNOWN).switch("allow-privileged", default=False)
    assert not parse_flags(["--allow-privileged=false"], KNOWN).switch("allow-privileged", default=True)
    assert parse_flags([], KNOWN).switch("allow-privileged", default=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nope"], "unknown flag: --nope"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["now"], '"kube-apiserver" does not take any arguments, got ["now"]'),
    ],
)
def test_what_kube_apiserver_refuses_is_refused_in_its_words(arguments: list[str], sentence: str) -> None:
    with pytest.raises(FlagError) as refused:
        parse_flags(arguments, KNOWN)
    assert str(refused.value) == sentence
    real = subprocess.run(
        [find_binaries().kube_apiserver, *arguments], capture_output=True, text=True, timeout=60
    ).stderr
    assert f"Error: {sentence}" in real


def test_values_of_another_type_are_refused_in_its_words() -> None:
    flags = parse_flags(["--secure-port=many", "--allow-privileged=maybe"], KNOWN)
    with pytest.raises(FlagError) as refused:
        flags.number("secure-port", 6443)
    assert str(refused.value) == (
        'invalid argument "many" for "--secure-port" flag: strconv.ParseInt: parsing "many": invalid syntax'
    )
    with pytest.raises(FlagError) as refused:
        flags.switch("allow-privileged", default=True)
    assert str(refused.value) == (
        'invalid argument "maybe" for "--allow-privileged" flag: strconv.ParseBool: parsing "maybe": invalid syntax'
    )


def test_the_known_flags_are_those_of_the_pinned_kube_apiserver() -> None:
    """Written by `python -m tools.generate_kube_apiserver_flags`."""
    said = subprocess.run([find_binaries().kube_apiserver, "--help"], capture_output=True, text=True, timeout=60).stdout
    assert FLAGS.read_text().splitlines() == flags_in_help(said)
