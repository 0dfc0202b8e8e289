"""The conflicts of an apply that would change fields of other managers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.managedfields.entries import FieldManager, ManagerIdentity, Managers
from kubewright.controlplane.embedded.managedfields.fieldset import FieldSet, Path, path_text, paths, quoted


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One field that another manager owns with another value."""

    manager: FieldManager
    path: Path

    @property
    def who(self) -> str:
        """The other manager, as the message describes it."""
        text = quoted(self.manager.name)
        if self.manager.subresource:
            text += f" with subresource {quoted(self.manager.subresource)}"
        if self.manager.operation == "Update":
            text += f" using {self.manager.api_version}"
        return text


def disagreements(managers: Managers, lost: Mapping[ManagerIdentity, FieldSet]) -> list[Disagreement]:
    """Every field that each manager would lose, manager by manager."""
    others = sorted(lost, key=lambda identity: managers[identity].sort_text)
    return [Disagreement(managers[identity], path) for identity in others for path in paths(lost[identity])]


def refusal(found: Sequence[Disagreement]) -> StatusError:
    """409 with one cause per field."""
    causes: list[JSONValue] = []
    for one in found:
        cause: JSONObject = {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {one.who}",
            "field": path_text(one.path),
        }
        causes.append(cause)
    return StatusError(409, "Conflict", _message(found), details={"causes": causes})


def _message(found: Sequence[Disagreement]) -> str:
    if len(found) == 1:
        return f"Apply failed with 1 conflict: conflict with {found[0].who}: {path_text(found[0].path)}"
    lines: list[str] = []
    previous: FieldManager | None = None
    for one in found:
        if one.manager is not previous:
            lines.append(f"conflicts with {one.who}:")
            previous = one.manager
        lines.append(f"- {path_text(one.path)}")
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
