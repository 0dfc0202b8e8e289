"""An operator's own options, from flags and the environment."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from kubewright.api.model import Model
from kubewright.manager.flags import read_flags
from kubewright.manager.options import OptionError, OptionFlags


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Shops(Model):
    """Where shops are.

    Not in the help.
    """

    dns_zone: Annotated[str, Meta(description="The zone that names are made in", min_length=2)]
    workers: Annotated[int, Meta(ge=1, description="100 % of the workers")] = 3
    ratio: float = 0.5
    dry_run: bool = False
    timeout: timedelta = timedelta(minutes=90)
    level: Literal["low", "high"] = "low"
    colour: Colour = Colour.RED
    allow: list[str] = []
    ports: tuple[int, ...] = (80,)
    path: Path | None = None
    limit: Annotated[int | None, Meta(description="How many")] = None


def read(*arguments: str, environment: Mapping[str, str] | None = None) -> Shops:
    parser = argparse.ArgumentParser(prog="shop-operator")
    flags = OptionFlags(Shops, "shop-operator")
    flags.add_to(parser)
    return flags.read(parser.parse_args(["--dns-zone", "eu", *arguments]), environment or {})


def test_an_option_that_is_not_given_has_its_default() -> None:
    assert read() == Shops(dns_zone="eu")


def test_every_kind_of_value_can_be_given_as_a_flag() -> None:
    arguments = "--workers 5 --ratio 1 --dry-run --timeout 1h30m15s --level high --colour blue --path /x --limit 7"
    assert read(*arguments.split(), "--allow", "a", "--allow", "b,c", "--ports", "1") == Shops(
        dns_zone="eu",
        workers=5,
        ratio=1.0,
        dry_run=True,
        timeout=timedelta(hours=1, minutes=30, seconds=15),
        level="high",
        colour=Colour.BLUE,
        allow=["a", "b,c"],
        ports=(1,),
        path=Path("/x"),
        limit=7,
    )


def test_a_variable_counts_where_no_flag_is_given_and_an_empty_one_does_not() -> None:
    environment = {
        "SHOP_OPERATOR_DNS_ZONE": "us",
        "SHOP_OPERATOR_WORKERS": "7",
        "SHOP_OPERATOR_DRY_RUN": "true",
        "SHOP_OPERATOR_ALLOW": "a, b",
        "SHOP_OPERATOR_LIMIT": "",
    }
    expected = Shops(dns_zone="eu", workers=7, dry_run=True, allow=["a", "b"])
    assert read(environment=environment) == expected
    assert read("--dry-run=false", "--workers", "8", environment=environment) == msgspec.structs.replace(
        expected, dry_run=False, workers=8
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], '--workers: expected int >= 1, found "0"'),
        (["--workers", "many"], '--workers: expected int, found "many"'),
        (["--dns-zone", "x"], '--dns-zone: expected str of length >= 2, found "x"'),
        (["--dry-run=maybe"], '--dry-run: expected bool, found "maybe"'),
        (["--timeout", "5"], '--timeout: expected a duration such as "90s", "5m" or "1h30m", found "5"'),
        (["--level", "mid"], '--level: expected one of low, high, found "mid"'),
        (["--colour", "green"], '--colour: expected one of red, blue, found "green"'),
        (["--ports", "1", "--ports", "x"], '--ports: expected int, found "x"'),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_was_expected(arguments: list[str], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        read(*arguments)
    assert str(raised.value) == message


def test_the_value_of_a_variable_is_not_shown() -> None:
    with pytest.raises(OptionError) as raised:
        read(environment={"SHOP_OPERATOR_WORKERS": "secret"})
    assert str(raised.value) == "the environment variable SHOP_OPERATOR_WORKERS: expected int"


def test_an_error_of_post_init_is_reported_as_a_sentence() -> None:
    class Range(Model):
        low: int = 1
        high: int = 2

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("--low must not exceed --high")

    parser, flags = argparse.ArgumentParser(), OptionFlags(Range, "ranges")
    flags.add_to(parser)
    with pytest.raises(OptionError, match=r"^--low must not exceed --high$"):
        flags.read(parser.parse_args(["--low", "3"]), {})


def test_help_has_types_defaults_variables_and_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        read_flags("shop-operator", Shops, ["--help"])
    assert raised.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "options of shop-operator: Where shops are. --dns-zone TEXT" in shown
    for line in (
        "--dns-zone TEXT The zone that names are made in (env SHOP_OPERATOR_DNS_ZONE; required)",
        "--workers INT 100 % of the workers (env SHOP_OPERATOR_WORKERS; default: 3)",
        "--dry-run [BOOL] (env SHOP_OPERATOR_DRY_RUN; default: false)",
        "--timeout DURATION (env SHOP_OPERATOR_TIMEOUT; default: 1h30m)",
        "--level {low,high} (env SHOP_OPERATOR_LEVEL; default: low)",
        "--colour {red,blue} (env SHOP_OPERATOR_COLOUR; default: red)",
        "--allow TEXT (env SHOP_OPERATOR_ALLOW; may be repeated)",
        "--ports INT (env SHOP_OPERATOR_PORTS; may be repeated; default: 80)",
        "--limit INT How many (env SHOP_OPERATOR_LIMIT)",
    ):
        assert line in shown


def test_a_required_option_is_reported_with_its_description(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_OPERATOR_DNS_ZONE", raising=False)
    with pytest.raises(SystemExit) as raised:
        read_flags("shop-operator", Shops, [])
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "shop-operator: error: --dns-zone (or the environment variable SHOP_OPERATOR_DNS_ZONE) is required: "
        "The zone that names are made in"
    )


class Headers(Model):
    headers: dict[str, str] = {}


class Taken(Model):
    namespace: str = ""


def test_a_field_that_cannot_be_a_flag_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Headers\.headers: dict cannot be a flag: expected str, int, float"):
        OptionFlags(Headers, "shop-operator")


def test_a_field_with_the_name_of_a_flag_that_every_operator_has_is_named() -> None:
    with pytest.raises(TypeError, match=r"^Taken\.namespace: every operator has a flag --namespace; rename the field$"):
        read_flags("shop-operator", Taken, [])


@pytest.mark.parametrize("options", [dict, "Options", Shops(dns_zone="eu")])
def test_a_class_that_is_no_model_is_refused(options: object) -> None:
    with pytest.raises(TypeError, match=r"expected a class that derives from kubewright\.Model$"):
        OptionFlags(options, "shop-operator")  # type: ignore[arg-type]  # the mistake
