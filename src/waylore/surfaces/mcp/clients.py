"""Write Waylore into the settings files of MCP clients.

An entry is added, or replaces the one with the same name. Nothing else in the file changes, and a backup of the old
file is stored next to it. Secrets are never written; they belong in the user's own settings file of Waylore.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from waylore import legacy
from waylore.errors import ConfigError
from waylore.settings.load import Setting, find_user_file, list_settings
from waylore.settings.sections import Settings
from waylore.store.urls import parse_url

Name = Literal["claude", "claude-code", "cursor", "vscode"]
EXPORTED = ("store", "collection", "single_valued", "timezone", "embedding", "extraction", "search", "mcp", "telemetry")
PATHS = ("embedding.path", "extraction.cache")
EXTRAS = {"fastembed": "local", "model2vec": "model2vec", "openai": "openai", "spacy": "spacy", "llm": "openai"}
HIDDEN = "**********"  # pydantic shows this instead of a secret


class Client(NamedTuple):
    """A client: its settings file, the key of the servers in it, and other fields of an entry."""

    file: Path
    key: str = "mcpServers"
    extra: Mapping[str, str] = {}


CLIENTS: dict[Name, Callable[[], Client]] = {
    "claude": lambda: Client(_find_applications() / "Claude" / "claude_desktop_config.json"),
    "claude-code": lambda: Client(Path(".mcp.json")),
    "cursor": lambda: Client(Path.home() / ".cursor" / "mcp.json"),
    "vscode": lambda: Client(Path(".vscode") / "mcp.json", "servers", {"type": "stdio"}),
}
NAMES: tuple[Name, ...] = get_args(Name)
DEFAULT_NAME = "waylore"  # name of an entry; it also replaces the entry with the old name


class Entry(NamedTuple):
    """An entry: the command that starts Waylore, and the secret variables that were left out."""

    start: dict[str, Any]
    secrets: tuple[str, ...] = ()


def make_entry(
    client: Client, settings: Settings, options: Mapping[str, Any], arguments: Sequence[str], uvx: bool
) -> Entry:
    """Return the entry that starts Waylore with these settings from any folder."""
    command = _make_uvx_command(settings) if uvx else make_python_command()
    pairs = dict(_list_variables(settings, options))
    secrets = tuple(variable for variable, value in pairs.items() if HIDDEN in value)
    shown = {variable: value for variable, value in pairs.items() if variable not in secrets}
    start = {**client.extra, "command": command[0], "args": [*command[1:], "mcp", *arguments], "env": shown}
    return Entry(start, secrets)


def merge_entry(client: Client, name: str, start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the client's file with the entry."""
    known = read(client.file)
    others = known.get(client.key, {})
    if not isinstance(others, dict):
        raise ConfigError(f"{client.key} in {client.file} is not a JSON object; correct it first")
    if name == DEFAULT_NAME:
        others = {key: value for key, value in others.items() if not legacy.is_client_entry(key, value)}
    return {**known, client.key: {**others, name: start}}


def write(file: Path, content: Mapping[str, Any]) -> Path | None:
    """Write a client's file atomically. Return the path of the backup, if there was a file."""
    target = file.resolve()  # a symbolic link is kept
    target.parent.mkdir(parents=True, exist_ok=True)
    backup, fresh = (target.with_name(f"{target.name}.{suffix}") for suffix in ("bak", "new"))
    fresh.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    had_file = target.exists()
    if had_file:
        shutil.copy2(target, backup)
        shutil.copymode(target, fresh)
    fresh.replace(target)
    return backup if had_file else None


def read(file: Path) -> dict[str, Any]:
    """Return the content of a client's file; nothing if it does not exist."""
    try:
        text = file.read_text("utf-8-sig") if file.exists() else ""
        known = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ConfigError(f"{file} is not plain JSON ({error}); add the entry by hand, --print shows it") from error
    if not isinstance(known, dict):
        raise ConfigError(f"{file} is not a JSON object; add the entry by hand, --print shows it")
    return known


def _list_variables(settings: Settings, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings that would differ in another folder: all but the settings of the user's own file."""
    for setting in list_settings(settings, **options):
        is_from_user_file = setting.source == str(find_user_file()) and (
            setting.name != "store" or HIDDEN in setting.value
        )
        is_default = setting.source == "default" and setting.name not in {"store", "collection"}
        if setting.name.split(".")[0] in EXPORTED and not (is_from_user_file or is_default):
            yield setting.variable, _make_absolute(setting)


def _make_absolute(setting: Setting) -> str:
    """Return the value of a setting with an absolute path, if it is a path."""
    if setting.name == "store":
        return _make_store_absolute(setting.value)
    return str(Path(setting.value).absolute()) if setting.name in PATHS and setting.value else setting.value


def _make_store_absolute(store: str) -> str:
    """Return the address of a store with an absolute path, if it is a file."""
    parsed = parse_url(store)
    return store.replace(parsed.location, str(parsed.path.absolute())) if parsed.is_file else store


def make_python_command() -> list[str]:
    """Return the command that starts Waylore with this Python."""
    command = Path(sys.executable).with_name("waylore.exe" if sys.platform == "win32" else "waylore")
    return [str(command)] if command.exists() else [sys.executable, "-m", "waylore.surfaces.cli"]


def _make_uvx_command(settings: Settings) -> list[str]:
    needed = {EXTRAS.get(settings.embedding.provider), EXTRAS.get(settings.extraction.provider)}
    server = {"postgres"} if parse_url(settings.store).is_server else set()
    extras = ",".join(sorted({"mcp", *filter(None, needed), *server}))
    return ["uvx", "--from", f"waylore[{extras}]", "waylore"]


def _find_applications() -> Path:
    """Return the folder where applications store the settings of a user."""
    folders = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
    return Path.home() / folders.get(sys.platform, ".config")
