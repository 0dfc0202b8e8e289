"""Validation rules of custom resources, written in CEL.

The language, its libraries and its messages are those of Kubernetes 1.36 (cel-go); values are checked against the
schema they come from, so that a field that does not exist is found when the definition is created.
"""

from kubewright.controlplane.embedded.cel.definitions import check_rules
from kubewright.controlplane.embedded.cel.rules import CompiledRules, compile_rules

__all__ = ["CompiledRules", "check_rules", "compile_rules"]
