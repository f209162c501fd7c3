"""For all tests: the conformance suite explains its assertions as tests do."""

import pytest

pytest.register_assert_rewrite("weft.testing")
