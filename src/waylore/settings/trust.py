"""Decide which settings a file of the working folder may set, and record which files the user trusts.

A folder may come from another author. Until the user trusts them (`waylore trust`), its `waylore.toml` and `.env` can
set neither the receiver of a key or a text, nor the callers of the service. Trust is recorded by path and content, as
direnv does: a changed file is not trusted. A setting that is not listed here as harmless needs trust.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shlex import quote
from tempfile import NamedTemporaryFile
from typing import Any

from waylore.errors import ConfigError
from waylore.settings.names import Name, Values
from waylore.settings.sections import EMBEDDERS, EXTRACTORS, RERANKERS
from waylore.store.urls import parse_url

PROVIDERS = {  # defaults of the sections that have a key
    "embedding": (("embedding", "provider"), "none"),
    "extraction": (("extraction", "provider"), "rules"),
    "reranking": (("search", "reranker"), ""),
}
LOCAL_PROVIDERS = {"", *EMBEDDERS, *EXTRACTORS, *RERANKERS} - {"openai", "llm", "endpoint"}  # others may send texts
WRITTEN_PATHS = {("store",), ("extraction", "cache"), ("http", "upload_dir")}  # texts are written here
HARMLESS = {
    *(("collection",), ("single_valued",), ("timezone",)),
    *((section, name) for section in ("embedding", "reranking") for name in ("model", "path", "threads")),
    ("extraction", "model"),
    *(("search", name) for name in ("method", "top_k", "recipe")),
    *(("http", name) for name in ("port", "workers", "request_timeout", "idle_timeout", "rate_limit")),
    *(("http", name) for name in ("max_body_bytes", "max_upload_bytes", "max_concurrent_uploads", "min_upload_rate")),
    *(("jobs", name) for name in ("concurrency", "heartbeat_timeout")),
    *(("telemetry", name) for name in ("metrics", "log_format", "log_level")),
}


@dataclass(frozen=True, slots=True)
class Untrusted:
    """A value that a file may not set before the user trusts it."""

    value: Any
    file: Path


def mark_untrusted(values: Values, file: Path, content: bytes, record: Path) -> Values:
    """Return the values of a file of the working folder; mark values that need trust if the file is not trusted."""
    guarded = find_guarded(values, file)
    if not guarded or _read_record(record).get(_get_key(file)) == sha256(content).hexdigest():
        return values
    return {name: Untrusted(value, file) if name in guarded else value for name, value in values.items()}


def find_guarded(values: Values, file: Path) -> Values:
    """Return the values of a file that need trust."""
    folder = file.parent.resolve()
    return {name: value for name, value in values.items() if not _is_harmless(name, value, folder)}


def record_trust(file: Path, content: bytes, record: Path) -> None:
    """Trust this content of a file."""
    known = {**_read_record(record), _get_key(file): sha256(content).hexdigest()}
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=record.parent, delete=False
        ) as made:  # readable only by its user
            json.dump(known, made, indent=2)
        Path(made.name).replace(record)
    except OSError as error:
        raise ConfigError(f"{record} cannot be written: {error.strerror}; let this user write it") from error


def describe_untrusted(values: Values) -> str:
    """Return the problem of values that are not trusted, with the remedy; empty if all are trusted."""
    by_file: dict[Path, list[str]] = {}
    for name, value in values.items():
        if isinstance(value, Untrusted):
            by_file.setdefault(value.file, []).append(".".join(name))
    return "; ".join(
        f"{file} sets {', '.join(names)}, but you have not trusted this file: "
        f"read it, then run `waylore trust {quote(str(file.parent.resolve()))}`"
        for file, names in by_file.items()
    )


def allow_unused_keys(values: Values) -> Values:
    """Return the values; an untrusted key is allowed if the provider does not send it."""
    allowed = dict(values)
    for section, (provider, default) in PROVIDERS.items():
        key = values.get((section, "api_key"))
        if isinstance(key, Untrusted) and _is_local(values.get(provider, default)):
            allowed[section, "api_key"] = key.value
    return allowed


def _is_harmless(name: Name, value: Any, folder: Path) -> bool:
    if name in WRITTEN_PATHS:
        return not isinstance(value, str) or _is_inside(value, folder)
    if name in {provider for provider, _ in PROVIDERS.values()}:
        return _is_local(value)
    return name in HARMLESS


def _is_inside(location: str, folder: Path) -> bool:
    parsed = parse_url(location)
    is_file = parsed.is_file and not parsed.is_cells  # a catalogue of cells names further databases
    return is_file and (folder / parsed.path.expanduser()).resolve().is_relative_to(folder)


def _is_local(provider: Any) -> bool:
    return isinstance(provider, str) and provider in LOCAL_PROVIDERS


def _get_key(file: Path) -> str:
    return str(file.parent.resolve() / file.name)


def _read_record(record: Path) -> Mapping[str, str]:
    try:
        known: dict[str, str] = json.loads(record.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{record} cannot be read ({error}); remove it, and trust your folders again") from error
    return known
