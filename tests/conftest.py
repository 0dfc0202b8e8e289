"""What all tests have; the fixtures are those of `kubewright.testing`, as users have them."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["pytester"]

# No test needs an idle machine: how long one example takes says nothing.
settings.register_profile("kubewright", deadline=None)
settings.load_profile("kubewright")
