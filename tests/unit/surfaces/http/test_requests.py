"""Bodies offer what the engine has."""

from typing import get_args

from waylore.recipes import RECIPES
from waylore.surfaces.http.requests import METHODS


def test_every_method_can_be_asked_for() -> None:
    assert set(get_args(METHODS)) == {"auto", *RECIPES}
