"""Read files with settings, and mark the settings of a working folder that the user has not trusted.

The places of the files are found in `settings.load`, and `settings.trust` decides which settings need trust.
"""

import logging
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from waylore.errors import ConfigError
from waylore.project import PROJECT
from waylore.settings.names import Name, Values, find_unknown, flatten, pick_settings
from waylore.settings.sections import Settings
from waylore.settings.trust import find_guarded, mark_untrusted, record_trust
from waylore.store.urls import parse_url

log = logging.getLogger(__name__)
DOTENV = Path(".env")
PATHS = (("embedding", "path"), ("reranking", "path"), ("extraction", "cache"), ("http", "upload_dir"))


def read_file(file: Path) -> Values:
    """Return the settings of a file; none if it does not exist."""
    return _parse(file, _read_bytes(file)) if file.is_file() else {}


def read_folder_file(file: Path, record: Path) -> Values:
    """Return the settings of a file of the working folder; mark values that need trust but have none."""
    if not file.is_file():
        return {}
    content = _read_bytes(file)
    return mark_untrusted(_parse(file, content), file, content, record)


def warn_unknown(variables: Iterable[str], place: str) -> None:
    """Log variables with our prefix that no setting has."""
    for name in find_unknown(variables):
        log.warning("%s in %s is not a setting; `waylore config` lists them", name, place)


@contextmanager
def collect_unknown() -> Iterator[list[str]]:
    """Collect the variables that the settings warn of, each once, instead of logging them."""
    found: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            found.extend({str(record.args[0])} - {*found})
        return False

    log.addFilter(collect)
    try:
        yield found
    finally:
        log.removeFilter(collect)


def trust_file(file: Path, record: Path) -> Values:
    """Trust a file of a folder as it is now, if it needs that; return the settings that need it."""
    content = _read_bytes(file)
    guarded = find_guarded(_parse(file, content), file)
    if guarded:
        record_trust(file, content, record)
    return guarded


def _parse(file: Path, content: bytes) -> Values:
    return _parse_dotenv(content) if file.name == DOTENV.name else _parse_toml(file, content)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}; let this user read it") from error


def _parse_dotenv(content: bytes) -> Values:
    variables = dotenv_values(stream=StringIO(content.decode("utf-8", "replace")))
    warn_unknown(variables, ".env")
    return pick_settings(variables)


def _parse_toml(file: Path, content: bytes) -> Values:
    """Return the settings of a file. Relative paths in it count from its folder."""
    try:
        values = flatten(tomllib.loads(content.decode("utf-8")))
    except ValueError as error:
        raise ConfigError(f"{file} is not TOML: {error}") from error
    if file.parent == Path():
        return values
    if file.name == PROJECT.name:
        values.setdefault(("store",), Settings.model_fields["store"].default)
    return {name: _resolve(name, value, file.parent) for name, value in values.items()}


def _resolve(name: Name, value: Any, folder: Path) -> Any:
    if not isinstance(value, str):
        return value
    if name in PATHS:
        return str(folder / Path(value).expanduser())
    if name == ("store",) and (parsed := parse_url(value)).is_file:
        return value.replace(parsed.location, str(folder / parsed.path.expanduser()))
    return value
