"""Exploring an operator: faults, crashes and stale caches at each of its API calls. See `exploration.explore`."""

from kubewright.testing.exploration.exploration import Exploration, explore
from kubewright.testing.exploration.faults import APICall, Fault, FaultKind
from kubewright.testing.exploration.findings import Finding, Problem
from kubewright.testing.exploration.world import World

__all__ = ["APICall", "Exploration", "Fault", "FaultKind", "Finding", "Problem", "World", "explore"]
