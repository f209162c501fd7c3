"""How MCP clients are told of Waylore: which file each of them reads, and what goes into it.

An entry is added to what is there, or takes the place of one with the same name; nothing else in the file
changes, and the file as it was is kept beside it. Secrets are never written: the user's own file of settings is
the place for them.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from waylore.errors import ConfigError
from waylore.settings.load import Setting, Settings, told, users_own
from waylore.store.urls import parse_url

Name = Literal["claude", "claude-code", "cursor", "vscode"]
SENT = ("store", "collection", "functional", "embedding", "extraction", "telemetry")
FILES = ("embedding.path", "extraction.cache")
EXTRAS = {"fastembed": "local", "model2vec": "model2vec", "openai": "openai", "spacy": "spacy", "llm": "openai"}
HIDDEN = "**********"  # what pydantic shows of a secret


class Client(NamedTuple):
    """A client: the file that it reads, under which key, and what else an entry of it says."""

    file: Path
    key: str = "mcpServers"
    also: Mapping[str, str] = {}


CLIENTS: dict[Name, Callable[[], Client]] = {
    "claude": lambda: Client(_applications() / "Claude" / "claude_desktop_config.json"),
    "claude-code": lambda: Client(Path(".mcp.json")),
    "cursor": lambda: Client(Path.home() / ".cursor" / "mcp.json"),
    "vscode": lambda: Client(Path(".vscode") / "mcp.json", "servers", {"type": "stdio"}),
}
NAMES: tuple[Name, ...] = get_args(Name)


class Entry(NamedTuple):
    """What a client is told: how to start Waylore, and what was left out because it is secret."""

    start: dict[str, Any]
    secrets: tuple[str, ...] = ()


def entry(
    client: Client, settings: Settings, options: Mapping[str, Any], arguments: Sequence[str], uvx: bool
) -> Entry:
    """How a client starts Waylore with these settings from whatever folder it runs in."""
    command = _by_uvx(settings) if uvx else _by_this_python()
    pairs = dict(_environment(settings, options))
    secrets = tuple(variable for variable, value in pairs.items() if HIDDEN in value)
    shown = {variable: value for variable, value in pairs.items() if variable not in secrets}
    start = {**client.also, "command": command[0], "args": [*command[1:], "mcp", *arguments], "env": shown}
    return Entry(start, secrets)


def merged(client: Client, name: str, start: Mapping[str, Any]) -> dict[str, Any]:
    """What the file will say: all that it says now, and the entry."""
    known = _read(client.file)
    others = known.get(client.key, {})
    if not isinstance(others, dict):
        raise ConfigError(f"{client.key} in {client.file} is not a JSON object: mend it first")
    return {**known, client.key: {**others, name: start}}


def write(file: Path, content: Mapping[str, Any]) -> Path | None:
    """Write a client's file in one go; return where the old one is kept, if there was one."""
    target = file.resolve()  # a link stays one
    target.parent.mkdir(parents=True, exist_ok=True)
    kept, fresh = (target.with_name(f"{target.name}.{suffix}") for suffix in ("bak", "new"))
    fresh.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    was_there = target.exists()
    if was_there:
        shutil.copy2(target, kept)
        shutil.copymode(target, fresh)
    fresh.replace(target)
    return kept if was_there else None


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8-sig") if file.exists() else ""
        known = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ConfigError(
            f"{file} is not plain JSON ({error}): add the entry by hand, --print shows it"
        ) from error
    if not isinstance(known, dict):
        raise ConfigError(f"{file} is not a JSON object: add the entry by hand, --print shows it")
    return known


def _environment(settings: Settings, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings that would not be the same elsewhere; what the user's own file says is read there too."""
    for setting in told(settings, **options):
        is_read_there = setting.source == str(users_own()) and (
            setting.name != "store" or HIDDEN in setting.value
        )
        is_same = setting.source == "default" and setting.name not in {"store", "collection"}
        if setting.name.split(".")[0] in SENT and not (is_read_there or is_same):
            yield setting.variable, _anywhere(setting)


def _anywhere(setting: Setting) -> str:
    """A setting's value that means the same in every folder."""
    if setting.name == "store":
        return _absolute(setting.value)
    return str(Path(setting.value).absolute()) if setting.name in FILES and setting.value else setting.value


def _absolute(store: str) -> str:
    """A store's address that is the same from every folder."""
    parsed = parse_url(store)
    return store.replace(parsed.location, str(parsed.path.absolute())) if parsed.is_file else store


def _by_this_python() -> list[str]:
    command = Path(sys.executable).with_name("waylore.exe" if sys.platform == "win32" else "waylore")
    return [str(command)] if command.exists() else [sys.executable, "-m", "waylore.surfaces.cli"]


def _by_uvx(settings: Settings) -> list[str]:
    needed = {EXTRAS.get(settings.embedding.provider), EXTRAS.get(settings.extraction.provider)}
    server = {"postgres"} if parse_url(settings.store).is_server else set()
    extras = ",".join(sorted({"mcp", *filter(None, needed), *server}))
    return ["uvx", "--from", f"waylore[{extras}]", "waylore"]


def _applications() -> Path:
    """Where applications of a user keep their settings."""
    folders = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
    return Path.home() / folders.get(sys.platform, ".config")
