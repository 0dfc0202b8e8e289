"""docs/webhooks.md: its example does what the text says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kubewright.webhook import FieldCause, Review, ReviewRequest

DOCUMENT = (Path(__file__).parents[2] / "docs/webhooks.md").read_text(encoding="utf-8")


@pytest.fixture
def kiosk(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    ((name, text),) = re.findall(r"```python\n# (\S+)\.py\n(.*?)```", DOCUMENT, re.DOTALL)
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


async def test_the_example_defaults_and_validates(kiosk: ModuleType) -> None:
    review = Review(kiosk.Kiosk(spec=kiosk.KioskSpec()), request=ReviewRequest())
    review.user.username = "eve"
    kiosk.default_owner.function(review)
    assert review.object.spec.owner == "eve"
    review.object.spec.seats = 0
    assert await kiosk.check_kiosk.function(review) == [FieldCause.invalid("spec.seats", 0, "must be at least 1")]
    for webhook in (kiosk.default_owner, kiosk.check_kiosk):
        assert f"`{webhook.path}`" in DOCUMENT
