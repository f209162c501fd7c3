"""`waylore keys`: create, list, rotate and revoke the API keys of the HTTP service."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.table import Column

from waylore.dates import format_time
from waylore.errors import ConfigError, NotFound
from waylore.service.registry.open import open_registry
from waylore.service.registry.protocol import ALL_COLLECTIONS, SCOPES, Key, Registry, Scope
from waylore.settings.load import load
from waylore.surfaces.cli.options import keep_given
from waylore.surfaces.cli.serve import Store
from waylore.surfaces.terminal.output import AsJson, print_result, report_errors
from waylore.surfaces.terminal.tables import make_table
from waylore.types.knowledge import SOURCES, Source

keys_app = typer.Typer(no_args_is_help=True, help="API keys of the HTTP service.")

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, as `waylore keys list` shows it.")]
Collections = Annotated[
    list[str] | None, typer.Option("--collection", help="Collection that the key opens; all if absent.")
]
Labels = Annotated[list[str] | None, typer.Option("--label", help="Label of the key's caller; all if absent.")]
Days = Annotated[float | None, typer.Option("--expires", min=0, help="Days until the key expires; never if absent.")]
Grace = Annotated[float, typer.Option(min=0, help="Hours that the old token stays valid.")]
MaxSource = Annotated[
    str | None,
    typer.Option(
        help="Most trusted source of documents that the key writes: user_edit, file, system or conversation; "
        "conversation for a key with labels or a user, else user_edit, if absent."
    ),
]
User = Annotated[
    str | None, typer.Option(help="User that the key reads and writes for, and no other; any user if absent.")
]
ScopeName = Annotated[str, typer.Option("--scope", help="read, write or admin; each includes the ones before it.")]


@keys_app.command("create")
def create_key(
    name: KeyName,
    collection: Collections = None,
    scope: ScopeName = "read",
    label: Labels = None,
    expires: Days = None,
    max_source: MaxSource = None,
    user: User = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print its token, which is shown only once.

    Example: `waylore keys create assistant --collection team --scope write`
    """
    from waylore.service.keys import make_key  # noqa: PLC0415

    with _open_registry(store) as registry:
        ends = None if expires is None else datetime.now(UTC) + timedelta(days=expires)
        key, token = make_key(
            name,
            collections=collection or [ALL_COLLECTIONS],
            scope=_check_scope(scope),
            labels=label,
            expires=ends,
            max_source=None if max_source is None else _check_source(max_source),
            user=user,
        )
        registry.set_key(key)
    _print_token(key, token, as_json)


@keys_app.command("list")
def list_keys(store: Store = None, as_json: AsJson = False) -> None:
    """List the keys, oldest first.

    Example: `waylore keys list`
    """
    with _open_registry(store) as registry:
        keys = list(_list_all(registry))
    table = make_table(Column("key", no_wrap=True), "name", "scope", "opens", "last used", "state")
    for key in keys:
        table.add_row(key.id, key.name, key.scope, _describe_access(key), _format_time(key.used), _describe_state(key))
    print_result([_to_json(key) for key in keys], table, as_json)


@keys_app.command("rotate")
def rotate_key(key: KeyId, grace: Grace = 24.0, store: Store = None, as_json: AsJson = False) -> None:
    """Give a key a new token, which is shown only once; the old one stays valid for a while.

    Example: `waylore keys rotate 0123456789abcdef --grace 1`
    """
    from waylore.service.keys import rotate_secret  # noqa: PLC0415

    with _open_registry(store) as registry:
        after, token = rotate_secret(_find_key(registry, key), grace=timedelta(hours=grace))
        registry.set_key(after)
    _print_token(after, token, as_json)


@keys_app.command("revoke")
def revoke_key(key: KeyId, store: Store = None, as_json: AsJson = False) -> None:
    """Revoke a key for good; it takes effect within seconds.

    Example: `waylore keys revoke 0123456789abcdef`
    """
    from waylore.service.keys import mark_revoked  # noqa: PLC0415

    with _open_registry(store) as registry:
        after = mark_revoked(_find_key(registry, key))
        registry.set_key(after)
    print_result(_to_json(after), f"{after.name} ({after.id}) is revoked", as_json)


@contextmanager
def _open_registry(store: str | None) -> Iterator[Registry]:
    with report_errors():
        settings = load(**keep_given(store=store or ""))
        with closing(open_registry(settings.store)) as registry:
            yield registry


def _list_all(registry: Registry) -> Iterator[Key]:
    page = registry.list_keys()
    while page:
        yield from page
        page = registry.list_keys(after=page[-1])


def _check_scope(name: str) -> Scope:
    known = next((scope for scope in SCOPES if scope == name), None)
    if known is None:
        raise ConfigError(f"unknown scope {name!r}; use {', '.join(SCOPES)}")
    return known


def _check_source(name: str) -> Source:
    known = next((source for source in SOURCES if source == name), None)
    if known is None:
        raise ConfigError(f"unknown source {name!r}; use {', '.join(SOURCES)}")
    return known


def _find_key(registry: Registry, id_: str) -> Key:
    key = registry.get_key(id_)
    if key is None:
        raise NotFound(f"no key {id_!r}; list them with `waylore keys list`")
    return key


def _print_token(key: Key, token: str, as_json: bool) -> None:
    note = f"{key.name} ({key.id}), shown only once; send it as Authorization: Bearer …"
    if as_json:
        print_result({**_to_json(key), "token": token}, "", as_json)
    else:
        typer.echo(note, err=True)
        typer.echo(token)


def _to_json(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "collections": sorted(key.collections),
        "labels": None if key.labels is None else sorted(key.labels),
        "max_source": key.max_source,
        "user": key.user,
        "created": key.created.isoformat(),
        "expires": key.expires and key.expires.isoformat(),
        "revoked": key.revoked and key.revoked.isoformat(),
        "used": key.used and key.used.isoformat(),
    }


def _describe_access(key: Key) -> str:
    labels = "" if key.labels is None else f" (labels: {', '.join(sorted(key.labels)) or 'none'})"
    user = f" (user: {key.user})" if key.user else ""
    return ", ".join(sorted(key.collections)) + labels + user


def _describe_state(key: Key) -> str:
    if key.revoked:
        return "revoked"
    if key.expires is None:
        return "valid"
    return f"until {_format_time(key.expires)}" if key.expires > datetime.now(UTC) else "expired"


def _format_time(time: datetime | None) -> str:
    return format_time(time) if time else "never"
