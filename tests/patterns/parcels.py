"""A kind for the tests of the patterns."""

from __future__ import annotations

from kubewright import Condition, Model, ObjectMeta, Resource, resource


class ParcelSpec(Model):
    size: int = 1


class ParcelStatus(Model):
    phase: str = ""
    seen: int = 0
    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("patterns.kubewright.test/v1")
class Parcel(Resource[ParcelSpec, ParcelStatus]):
    """Something with conditions."""


def parcel(name: str = "web", namespace: str = "default", *, generation: int = 1) -> Parcel:
    """One that exists only here."""
    return Parcel(metadata=ObjectMeta(name=name, namespace=namespace, generation=generation), spec=ParcelSpec())
