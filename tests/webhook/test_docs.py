"""docs/webhooks.md: its example does what the text says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kubewright.api.markers import JSONObject
from kubewright.testing import assert_round_trips
from kubewright.webhook import FieldCause, Review, ReviewRequest, converts
from kubewright.webhook.stash import ANNOTATION

DOCUMENT = (Path(__file__).parents[2] / "docs/webhooks.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The modules of the document, by name."""
    modules = {}
    for name, text in re.findall(r"```python\n# (\S+)\.py\n(.*?)```", DOCUMENT, re.DOTALL):
        modules[name] = module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return modules


async def test_the_example_defaults_and_validates(examples: dict[str, Any]) -> None:
    kiosk = examples["kiosk"]
    review = Review(kiosk.Kiosk(spec=kiosk.KioskSpec()), request=ReviewRequest())
    review.user.username = "eve"
    kiosk.default_owner.function(review)
    assert review.object.spec.owner == "eve"
    review.object.spec.seats = 0
    assert await kiosk.check_kiosk.function(review) == [FieldCause.invalid("spec.seats", 0, "must be at least 1")]
    for webhook in (kiosk.default_owner, kiosk.check_kiosk):
        assert f"`{webhook.path}`" in DOCUMENT


def test_the_example_converts_and_keeps_what_the_spoke_cannot_express(examples: dict[str, Any]) -> None:
    hub, spoke = examples["kiosk"].Kiosk, examples["kiosk_v1beta1"].KioskV1Beta1
    versions = converts(hub, spoke)
    stored: JSONObject = {
        "apiVersion": "town.example.com/v1",
        "kind": "Kiosk",
        "metadata": {"name": "it"},
        "spec": {"seats": 4, "owner": "eve"},
    }
    seen: Any = versions.convert(stored, "town.example.com/v1beta1")
    assert seen["spec"] == {"chairs": 4}
    assert ANNOTATION in seen["metadata"]["annotations"]
    assert f"`{ANNOTATION}`" in DOCUMENT
    seen["spec"]["chairs"] = 6
    assert versions.convert(seen, "town.example.com/v1")["spec"] == {"seats": 6, "owner": "eve"}
    assert 'assert_round_trips(KioskV1Beta1, Kiosk, stashed=["spec.owner"])' in DOCUMENT
    assert_round_trips(spoke, hub, stashed=["spec.owner"], examples=10)
