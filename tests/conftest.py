"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# No test is about speed: a busy machine must not fail one. In CI hypothesis has a profile of its
# own, which tries the same examples every time.
if not os.environ.get("CI"):
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
