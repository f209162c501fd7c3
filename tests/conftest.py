"""For all tests: the conformance suite explains its assertions, and a slow machine fails no property."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("weft.testing")
settings.register_profile("weft", deadline=None)
settings.load_profile("weft")
