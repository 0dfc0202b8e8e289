"""Semantic versions: `semver('1.2.3').isLessThan(semver(self.version, true))`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, INT, STRING, CelType
from kubewright.controlplane.embedded.cel.values import EvaluationError, Opaque

SEMVER: Final = CelType("struct", "kubernetes.Semver")

_DIGITS: Final = re.compile(r"[0-9]*")
_WORD: Final = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class SemanticVersion(Opaque):
    """A semantic version; build metadata takes no part in comparisons."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)

    type_name = "kubernetes.Semver"

    @property
    def order(self) -> tuple[object, ...]:
        """What versions are sorted by: a release is after its pre-releases, numbers are before words."""
        parts = tuple((0, bounded_integer(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts


def parsed_version(text: str) -> SemanticVersion:
    """`1.2.3-rc.1+build`; ValueError when it is none."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    version = SemanticVersion(
        _number(parts[0], "major"),
        _number(parts[1], "minor"),
        _number(patch, "patch"),
        tuple(pre.split(".")) if dash else (),
        tuple(build.split(".")) if plus else (),
    )
    for part in version.pre:
        if not part:
            raise ValueError("Prerelease is empty")
        if part.isdigit() and part.startswith("0") and len(part) > 1:
            raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        if not _WORD.fullmatch(part):
            raise ValueError(f'Invalid character(s) found in prerelease "{part}"')
    for part in version.build:
        if not part:
            raise ValueError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise ValueError(f'Invalid character(s) found in build meta data "{part}"')
    return version


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in {name} number "{text}"')
    if len(text) > 1 and text.startswith("0"):
        raise ValueError(f'{name.capitalize()} number must not contain leading zeroes "{text}"')
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if (number := bounded_integer(text)) >= 2**64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return number


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            shortened = part.lstrip("0")
            parts[index] = shortened if shortened[:1].isdigit() else f"0{shortened}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _version(text: str, normalize: bool = False) -> SemanticVersion:
    try:
        return parsed_version(_normalized(text) if normalize else text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _version(text, normalize)
    except EvaluationError:
        return False
    return True


def _compare(left: SemanticVersion, right: SemanticVersion) -> int:
    return (left.order > right.order) - (left.order < right.order)


VERSION_FUNCTIONS: Final[list[Overload]] = [
    function("semver", [STRING], SEMVER, _version),
    function("semver", [STRING, BOOL], SEMVER, _version),
    function("isSemver", [STRING], BOOL, _is_version),
    function("isSemver", [STRING, BOOL], BOOL, _is_version),
    method("isGreaterThan", [SEMVER, SEMVER], BOOL, lambda left, right: _compare(left, right) > 0),
    method("isLessThan", [SEMVER, SEMVER], BOOL, lambda left, right: _compare(left, right) < 0),
    method("compareTo", [SEMVER, SEMVER], INT, _compare),
    method("major", [SEMVER], INT, lambda version: version.major),
    method("minor", [SEMVER], INT, lambda version: version.minor),
    method("patch", [SEMVER], INT, lambda version: version.patch),
]
