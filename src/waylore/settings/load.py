"""Settings: the only reader of the environment.

A setting comes from the first of these that has it: an option of the command line, an environment variable
(`WAYLORE_STORE`, `WAYLORE_HTTP_PORT`), a secret in a file (`/run/secrets/waylore_store`), the file `.env`, the file
`waylore.toml` of the working directory, the user's own `waylore/config.toml`, its default. `told` says which it was.
Nothing here opens a store or loads a model.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from waylore.errors import ConfigError
from waylore.settings.sections import Embedding, Extraction, Http, Oidc, Section, Telemetry, Words

PREFIX = "WAYLORE_"
PROJECT = Path("waylore.toml")
SECRETS = Path("/run/secrets")  # where containers have them; systemd says where in CREDENTIALS_DIRECTORY


class Settings(BaseSettings):
    """Every setting with its default."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        env_file=".env",
        dotenv_filtering="match_prefix",
        toml_file=[],
    )

    store: str = Field(default="memory.waylore", description="a file, postgresql://…, or cells+ a catalogue")
    collection: str = Field(default="default", description="the body of knowledge to use")
    functional: Words = Field(default=(), description="predicates of which a subject has one object at a time")
    embedding: Embedding = Embedding()
    extraction: Extraction = Extraction()
    http: Http = Http()
    oidc: Oidc = Oidc()
    telemetry: Telemetry = Telemetry()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 (pydantic's signature)
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """First come, first served."""
        return (init_settings, *_sources().values())


class SecretFiles(EnvSettingsSource):
    """Files named like variables, one value in each: secrets that no environment shows to others."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        folder = secrets_folder()
        files = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
        ours = [file for file in files if file.name.upper().startswith(PREFIX)]
        return {file.name.lower(): file.read_text("utf-8").strip() for file in ours}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, as in `http.port`, its value for people to read, and where it came from."""

    name: str
    value: str
    source: str
    variable: str
    description: str


def load(**options: Any) -> Settings:
    """The settings, where `options` win; a value that cannot be used is told with its place."""
    try:
        return Settings(**options)
    except ValidationError as error:
        given = _given(options)
        told = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']} ({_origin(given, problem['loc'])})"
            for problem in error.errors(include_url=False)
        )
        raise ConfigError(f"{told}. `waylore config` lists what there is") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{PROJECT} or {users_own()} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be read: {error.strerror}; let this user read it"
        ) from error


def told(settings: Settings, **options: Any) -> Iterator[Setting]:
    """Every setting with where it came from; secrets are masked."""
    given = _given(options)
    for path, value, description in _all(settings):
        yield _setting(path, value, description, given)


def unknown_variables() -> tuple[str, ...]:
    """Variables of the environment that look like ours and are not read by anyone."""
    known = {_variable(path) for path, _, _ in _all(Settings.model_construct())} | {f"{PREFIX}MODELS"}
    return tuple(sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known))


def of_library(variable: str) -> str:
    """A variable that is not ours: a library reads it by itself, and we go by it."""
    return os.environ.get(variable, "")


@contextmanager
def handed_down(variable: str, value: str) -> Iterator[None]:
    """A library's variable for the processes that are started within."""
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]


def users_own() -> Path:
    """The user's own file of settings, for all folders."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "waylore" / "config.toml"


def secrets_folder() -> Path:
    """Where whoever started us put secrets."""
    return Path(os.environ.get("CREDENTIALS_DIRECTORY") or SECRETS)


def _all(settings: Settings) -> Iterator[tuple[tuple[str, ...], Any, str | None]]:
    for name, field in type(settings).model_fields.items():
        section = getattr(settings, name)
        if isinstance(section, Section):
            for inner, of_section in type(section).model_fields.items():
                yield (name, inner), getattr(section, inner), of_section.description
        else:
            yield (name,), section, field.description


def _variable(path: tuple[str, ...]) -> str:
    return PREFIX + "_".join(path).upper()


def hand_on(options: Mapping[str, object]) -> None:
    """Put options, by their names as in `http_port`, where every process that we start finds them."""
    given = {name: str(value) for name, value in options.items() if value is not None}
    os.environ.update({f"{PREFIX}{name.upper()}": value for name, value in given.items()})


def _setting(path: tuple[str, ...], value: Any, description: str | None, given: Mapping[str, Any]) -> Setting:
    shown = ", ".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
    return Setting(
        name=".".join(path),
        value=without_password(shown) if path == ("store",) else shown,
        source=_origin(given, path),
        variable=_variable(path),
        description=description or "",
    )


def _sources() -> dict[str, InitSettingsSource | EnvSettingsSource]:
    return {
        "environment": EnvSettingsSource(Settings),
        str(secrets_folder()): SecretFiles(Settings),
        ".env": DotEnvSettingsSource(Settings),
        str(PROJECT): TomlConfigSettingsSource(Settings, PROJECT),
        str(users_own()): TomlConfigSettingsSource(Settings, users_own()),
    }


def _given(options: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What each place says, the first to be believed first."""
    return {"option": options} | {name: source() for name, source in _sources().items()}


def _origin(given: Mapping[str, Mapping[str, Any]], path: tuple[int | str, ...]) -> str:
    """Where a setting comes from: the first that has it."""
    return next((name for name, values in given.items() if _has(values, path)), "default")


def _has(values: Any, path: tuple[int | str, ...]) -> bool:
    for key in path:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def without_password(url: str) -> str:
    """An address without its password."""
    return re.sub(r"(//[^:/@]*:|[?&]password=)[^@&]+", r"\1**********", url)
