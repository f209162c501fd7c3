"""The names of all settings, their environment variables, and the values of these variables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from waylore.settings.sections import Section, Settings

PREFIX = "WAYLORE_"
TOOLS = tuple(f"{PREFIX}{name}" for name in ("MODELS", "TEXTSEARCH", "QDRANT", "DEBIAN_MIRROR"))  # for our own tools
Name: TypeAlias = tuple[str, ...]  # name of a setting, as ("http", "port")
Values: TypeAlias = dict[Name, Any]


def walk_settings(settings: Settings) -> Iterator[tuple[Name, Any, str]]:
    """Yield the name, value and description of every setting."""
    for name, field in type(settings).model_fields.items():
        section = getattr(settings, name)
        if isinstance(section, Section):
            for inner, of_section in type(section).model_fields.items():
                yield (name, inner), getattr(section, inner), of_section.description or ""
        else:
            yield (name,), section, field.description or ""


NAMES = tuple(name for name, _, _ in walk_settings(Settings()))


def get_variable(name: Name) -> str:
    """Return the variable of a setting, as WAYLORE_HTTP_PORT."""
    return PREFIX + "_".join(name).upper()


def pick_settings(variables: Mapping[str, str | None]) -> Values:
    """Return the settings among variables."""
    return {name: variables[get_variable(name)] for name in NAMES if variables.get(get_variable(name)) is not None}


def find_unknown(variables: Iterable[str]) -> tuple[str, ...]:
    """Return the variables with our prefix that belong to no setting."""
    known = {*map(get_variable, NAMES), *TOOLS}
    return tuple(sorted(name for name in variables if name.startswith(PREFIX) and name not in known))


def flatten(values: Mapping[str, Any]) -> Values:
    """Return a nested mapping by names of settings."""
    flat: Values = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {(key, *inner): each for inner, each in flatten(value).items()}
        elif isinstance(value, Section):
            flat |= {(key, inner): getattr(value, inner) for inner in type(value).model_fields}
        else:
            flat[key,] = value
    return flat
