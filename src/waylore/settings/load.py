"""Load the settings: the only reader of the environment.

A setting comes from the first of these places that has it: an option of the command line, an environment variable
(`WAYLORE_STORE`, `WAYLORE_HTTP_PORT`), a secret in a file (`/run/secrets/waylore_store`), the file `.env`, the file
`waylore.toml` of the working folder or of the nearest parent up to a `.git` or the home folder, the user's own
`waylore/config.toml`, its default. `list_settings` reports the place. `settings.trust` decides which settings a file of
the working folder may set. Nothing here opens a store or loads a model.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError

from waylore import legacy
from waylore.dates import find_timezone, show_times_in
from waylore.errors import ConfigError
from waylore.project import PROJECT, find_project_file
from waylore.settings.files import DOTENV, read_file, read_folder_file, warn_unknown
from waylore.settings.names import (
    NAMES,
    PREFIX,
    Name,
    Values,
    flatten,
    get_variable,
    pick_settings,
    walk_settings,
)
from waylore.settings.sections import RENAMED, Settings
from waylore.settings.trust import Untrusted, allow_unused_keys, describe_untrusted
from waylore.store.urls import parse_url, without_password

log = logging.getLogger(__name__)
SECRETS = Path("/run/secrets")  # folder in containers; systemd names another in CREDENTIALS_DIRECTORY


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, as in `http.port`, its value for people to read, and the place it came from.

    `problem` says why a value cannot be used; it is empty if it can.
    """

    name: str
    value: str
    source: str
    variable: str
    description: str
    problem: str = ""


def load(**options: Any) -> Settings:
    """Load the settings; `options` override the rest. A value that cannot be used raises an error that names its place.

    From then on this process prints times in the timezone of the settings.
    """
    places = _read_places(options)
    warn_unknown(os.environ, "the environment")
    problems = [
        _describe_unknown(name, place) for place, values in places.items() for name in values if not _is_known(name)
    ]
    merged = _merge(places)
    if problems or (problem := describe_untrusted(merged)):
        raise ConfigError("; ".join(problems) or problem)
    try:
        settings = Settings.model_validate(_nest(merged))
    except ValidationError as error:
        problems = [_describe_invalid(problem, places) for problem in error.errors(include_url=False)]
        raise ConfigError("; ".join(problems)) from error
    show_times_in(find_timezone(settings.timezone))
    return settings if "store" in options else _find_old_store(settings)


def list_settings(settings: Settings, **options: Any) -> Iterator[Setting]:
    """Yield every setting with the place it came from; secrets are masked."""
    places = _read_places(options)
    for name, value, description in walk_settings(settings):
        yield _make_setting(name, value, _find_place(places, name), description)


def check_settings(**options: Any) -> Iterator[Setting]:
    """Yield every setting as `list_settings` does; settings that cannot be used have a `problem`."""
    places, unreadable = _read_usable_places(options)
    yield from unreadable
    for place, values in places.items():
        for name in [name for name in values if not _is_known(name)]:
            del values[name]
            unknown = _make_setting(name, "", place, "")  # without the value, which may be a secret
            yield replace(unknown, problem=_describe_unknown(name, place), variable="")
    settings, problems = _drop_invalid(places)
    for name, value, description in walk_settings(settings):
        used = problems.get(name, (value, _find_place(places, name), ""))
        yield replace(_make_setting(name, *used[:2], description), problem=used[2])


def _make_setting(name: Name, value: Any, source: str, description: str) -> Setting:
    shown = ", ".join(map(str, value)) if isinstance(value, tuple | list) else "" if value is None else str(value)
    return Setting(
        name=".".join(name),
        value=without_password(shown) if name == ("store",) or "://" in shown else shown,
        source=source,
        variable=get_variable(name),
        description=description,
    )


def _drop_invalid(places: dict[str, Values]) -> tuple[Settings, dict[Name, tuple[Any, str, str]]]:
    """Return the settings without invalid values, and the invalid values by name with place and problem."""
    problems = _drop_untrusted(places)
    while True:
        try:
            return Settings.model_validate(_nest(_merge(places))), problems
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                name = _get_name(problem)
                place = _find_place(places, name)
                value = _mask_key(name, places[place][name])
                problems.setdefault(name, (value, place, _describe_invalid(problem, places)))
            for values, name in product(places.values(), problems):
                values.pop(name, None)


def _drop_untrusted(places: dict[str, Values]) -> dict[Name, tuple[Any, str, str]]:
    """Remove untrusted values that would be used; return them by name, with place and problem."""
    found = {name: value for name, value in _merge(places).items() if isinstance(value, Untrusted)}
    problems = {}
    for name, one in found.items():
        problems[name] = (_mask_key(name, one.value), _find_place(places, name), describe_untrusted({name: one}))
    for place, values in places.items():
        kept = {name: value for name, value in values.items() if name not in found}
        places[place] = {name: value.value if isinstance(value, Untrusted) else value for name, value in kept.items()}
    return problems


def _mask_key(name: Name, value: Any) -> Any:
    return "**********" if name[-1] == "api_key" else value


def list_old_settings() -> tuple[tuple[str, str], ...]:
    """Return unread variables and files with the old name of this product, with their new names."""
    names = [*os.environ, *dotenv_values(DOTENV)]
    with suppress(OSError):
        names += [file.name for file in find_secrets().iterdir()]
    found = legacy.rename_settings(names, [PROJECT, find_user_file()])
    return tuple((old, _rename_variable(new)) for old, new in found)


def _rename_variable(name: str) -> str:
    """Return the present name of a variable that was renamed after version 0.1, or else the same name."""
    known = {tuple(old.split(".")): tuple(new.split(".")) for old, new in RENAMED.items()}
    renamed = {get_variable(old): get_variable(new) for old, new in known.items()}.get(name.upper(), "")
    return (renamed if name.isupper() else renamed.lower()) or name


def suggest(name: str) -> str:
    """Return the setting that a wrong name may mean; empty if none is similar."""
    known = [".".join(each) for each in NAMES]
    return RENAMED.get(name) or next(iter(get_close_matches(name, known, n=1)), "")


def export_options(options: Mapping[str, object]) -> None:
    """Put options, by names such as `http_port`, into the environment of started processes."""
    given = {name: str(value) for name, value in options.items() if value is not None}
    os.environ.update({f"{PREFIX}{name.upper()}": value for name, value in given.items()})


def read_variable(variable: str) -> str:
    """Return a variable of another program, such as OPENAI_API_KEY; empty if it is not set."""
    return os.environ.get(variable, "")


@contextmanager
def set_variable(variable: str, value: str) -> Iterator[None]:
    """Set a variable of a library for the processes that are started inside the block."""
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]


# -- places --------------------------------------------------------------------------------------------


def find_user_file() -> Path:
    """Return the user's own settings file, which applies to all folders."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "waylore" / "config.toml"


def find_trust_record() -> Path:
    """Return the file in which trust is recorded, beside the user's own settings."""
    return find_user_file().with_name("trusted.json")


def find_secrets() -> Path:
    """Return the folder of secrets."""
    return Path(os.environ.get("CREDENTIALS_DIRECTORY") or SECRETS)


def _read_places(options: Mapping[str, Any]) -> dict[str, Values]:
    """Return the values of each place, the strongest place first."""
    return {place: read() for place, read in _list_places(options).items()}


def _read_usable_places(options: Mapping[str, Any]) -> tuple[dict[str, Values], list[Setting]]:
    """Return the values of each readable place, and unreadable places as settings with a problem."""
    places: dict[str, Values] = {}
    unreadable = []
    for place, read in _list_places(options).items():
        try:
            places[place] = read()
        except ConfigError as error:
            unreadable.append(Setting(place, "", place, "", "", str(error)))
    return places, unreadable


def _list_places(options: Mapping[str, Any]) -> dict[str, Callable[[], Values]]:
    """Return a function for each place that reads its values, the strongest place first."""
    project, user = find_project_file(), find_user_file()
    return {
        "option": lambda: flatten(options),
        "environment": lambda: pick_settings(os.environ),
        str(find_secrets()): _read_secrets,
        str(DOTENV): lambda: read_folder_file(DOTENV, find_trust_record()),
        str(project): lambda: read_folder_file(project, find_trust_record()),
        str(user): lambda: read_file(user),
    }


def _read_secrets() -> Values:
    """Return settings from files that are named like variables, one value in each."""
    folder = find_secrets()
    try:
        files = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
        ours = [file for file in files if file.name.upper().startswith(PREFIX)]
        return pick_settings({file.name.upper(): file.read_text("utf-8").strip() for file in ours})
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be read: {error.strerror}; let this user read it") from error


def _merge(places: Mapping[str, Values]) -> Values:
    merged: Values = {}
    for values in reversed(list(places.values())):
        merged |= values
    if isinstance(store := merged.get(("store",)), str) and (parsed := parse_url(store)).is_file:
        merged["store",] = store.replace(parsed.location, str(parsed.path.expanduser()), 1)
    for section in ("embedding", "extraction"):
        if not merged.get((section, "api_key")) and (key := read_variable("OPENAI_API_KEY")):
            merged[section, "api_key"] = SecretStr(key)
    return allow_unused_keys(merged)


def _nest(values: Values) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in values.items():
        inner = nested
        for key in name[:-1]:
            inner = inner.setdefault(key, {})
        inner[name[-1]] = value
    return nested


# -- names ---------------------------------------------------------------------------------------------


def _is_known(name: Name) -> bool:
    return name in NAMES


def _find_place(places: Mapping[str, Values], name: Name) -> str:
    return next((place for place, values in places.items() if name in values), "default")


def _describe_unknown(name: Name, place: str) -> str:
    text = ".".join(name)
    guess = suggest(text)
    hint = f"did you mean {guess}?" if guess else "`waylore config` lists all settings"
    return f"unknown setting {text} ({place}); {hint}"


def _get_name(problem: Mapping[str, Any]) -> Name:
    """Return the setting of a problem that pydantic found."""
    name = tuple(map(str, problem["loc"][:2]))
    return name if name in NAMES else name[:1]


def _describe_invalid(problem: Mapping[str, Any], places: Mapping[str, Values]) -> str:
    name = _get_name(problem)
    return f"{'.'.join(name)}: {problem['msg']} ({_find_place(places, name)})"


def _find_old_store(settings: Settings) -> Settings:
    """Return the settings; the store is the file with the old name if it exists and the default file does not."""
    parsed = parse_url(settings.store)
    is_default = parsed.path.name == Settings.model_fields["store"].default and not parsed.is_cells
    old = legacy.find_old_path(parsed.path) if parsed.is_file and is_default else None
    if old is None:
        return settings
    log.warning("%s does not exist, so %s is opened: rename it", parsed.path, old)
    return settings.model_copy(update={"store": str(old)})
