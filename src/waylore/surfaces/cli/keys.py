"""`waylore serve` and `waylore keys`: the HTTP service from a terminal, and the keys that open it.

Options reach the processes that answer through the environment, which is where each of them reads its settings.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import typer
from rich.table import Column, Table

from waylore.errors import ConfigError, NotFound
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import EVERY, SCOPES, Key, Registry, Scope
from waylore.settings.load import load
from waylore.surfaces.cli.options import given
from waylore.surfaces.cli.serve import Allows, Days, Grace, KeyId, KeyName, Opens, Reads, Store
from waylore.surfaces.terminal.output import AsJson, tell, told_errors

keys_app = typer.Typer(no_args_is_help=True, help="API keys of the HTTP service.")


@keys_app.command("create")
def create_key(
    name: KeyName,
    collection: Opens = None,
    scope: Allows = "read",
    label: Reads = None,
    expires: Days = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; its token is shown this once."""
    from waylore.service.keys import issued  # noqa: PLC0415

    with _registry(store) as registry:
        ends = None if expires is None else datetime.now(UTC) + timedelta(days=expires)
        key, token = issued(
            name, collections=collection or [EVERY], scope=_scope(scope), labels=label, expires=ends
        )
        registry.set_key(key)
    _tell_token(key, token, as_json)


@keys_app.command("list")
def list_keys(store: Store = None, as_json: AsJson = False) -> None:
    """The keys, the oldest first."""
    with _registry(store) as registry:
        keys = list(_all_keys(registry))
    table = Table(Column("key", no_wrap=True), "name", "scope", "opens", "last used", "state")
    for key in keys:
        table.add_row(key.id, key.name, key.scope, _opens(key), _day(key.used), _state(key))
    tell([_plain(key) for key in keys], table, as_json)


@keys_app.command("rotate")
def rotate_key(key: KeyId, grace: Grace = 24.0, store: Store = None, as_json: AsJson = False) -> None:
    """Give a key a new token, shown this once; the former one works for a while longer."""
    from waylore.service.keys import rotated  # noqa: PLC0415

    with _registry(store) as registry:
        after, token = rotated(_known(registry, key), grace=timedelta(hours=grace))
        registry.set_key(after)
    _tell_token(after, token, as_json)


@keys_app.command("revoke")
def revoke_key(key: KeyId, store: Store = None, as_json: AsJson = False) -> None:
    """End a key for good, within seconds."""
    from waylore.service.keys import revoked  # noqa: PLC0415

    with _registry(store) as registry:
        after = revoked(_known(registry, key))
        registry.set_key(after)
    tell(_plain(after), f"{after.name} ({after.id}) opens nothing any more", as_json)


# -- keys ----------------------------------------------------------------------------------------------


@contextmanager
def _registry(store: str | None) -> Iterator[Registry]:
    with told_errors():
        settings = load(**given(store=store or ""))
        with closing(open_registry(settings.store)) as registry:
            yield registry


def _all_keys(registry: Registry) -> Iterator[Key]:
    page = registry.keys()
    while page:
        yield from page
        page = registry.keys(after=page[-1])


def _scope(name: str) -> Scope:
    known = next((scope for scope in SCOPES if scope == name), None)
    if known is None:
        raise ConfigError(f"there is no scope {name!r}: use {', '.join(SCOPES)}")
    return known


def _known(registry: Registry, id_: str) -> Key:
    key = registry.key(id_)
    if key is None:
        raise NotFound(f"there is no key {id_!r}: waylore keys list shows them")
    return key


def _tell_token(key: Key, token: str, as_json: bool) -> None:
    kept = f"{key.name} ({key.id}), shown this once; send it as Authorization: Bearer …"
    if as_json:
        tell({**_plain(key), "token": token}, "", as_json)
    else:
        typer.echo(kept, err=True)
        typer.echo(token)


def _plain(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "collections": sorted(key.collections),
        "labels": None if key.labels is None else sorted(key.labels),
        "created": key.created.isoformat(),
        "expires": key.expires and key.expires.isoformat(),
        "revoked": key.revoked and key.revoked.isoformat(),
        "used": key.used and key.used.isoformat(),
    }


def _opens(key: Key) -> str:
    labels = "" if key.labels is None else f" (labels: {', '.join(sorted(key.labels)) or 'none'})"
    return ", ".join(sorted(key.collections)) + labels


def _state(key: Key) -> str:
    if key.revoked:
        return "revoked"
    if key.expires is None:
        return "good"
    return f"until {_day(key.expires)}" if key.expires > datetime.now(UTC) else "expired"


def _day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else "never"
