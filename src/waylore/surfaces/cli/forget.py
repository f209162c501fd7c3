"""`waylore forget` and `quarantine`: remove documents or statements about a name, and show what was removed."""

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError
from waylore.fence import to_line
from waylore.indexing.files.folders import IGNORE_FILE
from waylore.indexing.redaction import NamedDocument
from waylore.project import find_project_folder
from waylore.surfaces import wire
from waylore.surfaces.cli.options import (
    CollectionName,
    SessionName,
    Since,
    StoreUrl,
    Until,
    UserName,
    find_documents,
    list_under,
    load_settings,
    open_for_change,
)
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result, show_progress
from waylore.types.identity import get_file
from waylore.types.knowledge import Document
from waylore.types.results import Receipt

SPECIAL = re.compile(r"([\\*?\[\]#! ])")  # characters with a special meaning in ignore rules


def forget(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DOCUMENT]...", help="Ids, addresses or paths of documents, or folders.", show_default=False
        ),
    ] = None,
    user: UserName = "",
    session: SessionName = "",
    since: Since = None,
    until: Until = None,
    matching: Annotated[
        str,
        typer.Option("--matching", metavar="WORDS", help="Only documents with a passage that contains these words."),
    ] = "",
    about: Annotated[
        list[str] | None,
        typer.Option("--about", metavar="NAME", help="All documents that have this name; may be repeated."),
    ] = None,
    statements: Annotated[
        bool, typer.Option("--statements", help="With --about: remove only the sentences with the name.")
    ] = False,
    expired: Annotated[
        bool,
        typer.Option(
            "--expired",
            help="Only documents that have expired or are older than retention.days; of all users without --user.",
        ),
    ] = False,
    ignore: Annotated[
        bool, typer.Option("--ignore", help="Do not add these files again: list them in .wayloreignore.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be forgotten, and forget nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Search the whole store for traces afterwards.")] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Remove documents, with everything that no other document supports.

    Without names, the options select the documents: of a user, a session or a time, or all expired ones. At a terminal
    you are asked for confirmation first.

    Example: `waylore forget docs/old.md notes/ --verify`
    """
    if statements and not about:
        raise typer.BadParameter("--statements needs --about NAME")
    with open_for_change(store, collection, with_models=statements) as memory:
        forget_selected = partial(
            memory.forget,
            user=user,
            session=session,
            since=since,
            until=until,
            matching=matching,
            expired=expired,
            older_than=_get_age(store, collection) if expired else None,
            dry_run=dry_run,
        )
        named = _find_about(memory, about, user) if about else ()
        if about:
            found = [each.document for each in named]
        elif documents:
            found = [document for name in documents for document in find_documents(memory, name, user)]
        else:
            found = _list_chosen(memory, forget_selected(dry_run=True), user, is_expired=expired)
        if not yes and not dry_run:
            _confirm(found, named, only_statements=statements)
        receipt = Receipt()
        if statements and found:
            receipt = _remove_statements(memory, about or [], named, user, is_dry=dry_run)
        elif found:
            receipt = forget_selected(*([each.id for each in found] if documents or about else ()))
        remains = list(memory.verify_forgotten(receipt)) if verify else None
    ignored = _ignore_files(found) if ignore and not dry_run else []
    _print(receipt, named, found, remains, ignored, is_dry=dry_run, as_json=as_json)
    if remains:
        raise typer.Exit(1)


def _get_age(store: str, collection: str) -> timedelta | None:
    """Return the age at which documents of the collection expire by the settings."""
    settings = load_settings(store, collection)
    return settings.retention.get_age(settings.collection)


def quarantine(
    author: Annotated[
        str, typer.Argument(metavar="[AUTHOR]", help="Author, as `waylore audit` shows it.", show_default=False)
    ] = "",
    release: Annotated[bool, typer.Option("--release", help="Bring the documents back.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the documents in quarantine for good.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List authors with documents in quarantine.")] = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Hide all documents of an author until they are released.

    Example: `waylore quarantine key:4f1c2a9be07d3351`
    """
    if bool(author) == list_ or release + forget + list_ > 1:
        raise typer.BadParameter("name an AUTHOR, with --release or --forget if you like, or use --list alone")
    with open_for_change(store, collection, with_models=False) as memory:
        if list_:
            authors = memory.list_quarantined()
            lines = [Text(f"{to_line(name)}: {shown.count(n, 'document')}") for name, n in authors.items()]
            print_result(authors, Group(*lines) if lines else "no documents in quarantine", as_json)
            return
        call = memory.release if release else memory.forget_quarantined if forget else memory.quarantine
        receipt = call(author)
    done = "released" if release else "forgotten" if forget else "taken back"
    kinds = ", ".join(shown.count(len(ids), name) for ids, name in _name_kinds(receipt))
    kept = f"; {shown.count(len(receipt.missing), 'document')} added again meanwhile, kept in quarantine"
    print_result(wire.Receipt.of(receipt).model_dump(), f"{done}: {kinds}{kept if receipt.missing else ''}", as_json)


def _find_about(memory: Waylore, names: Sequence[str], user: str) -> tuple[NamedDocument, ...]:
    total = memory.stats().documents
    with show_progress("reading documents") as show:
        return memory.find_about(names, user=user, progress=lambda done: show(done, total, f"{done:,}/{total:,}"))


def _remove_statements(
    memory: Waylore, names: Sequence[str], named: Sequence[NamedDocument], user: str, *, is_dry: bool
) -> Receipt:
    """Remove the statements with a name. Documents that have it in their address or speaker must be forgotten first."""
    if bound := [each.document for each in named if each.is_bound]:
        places = ", ".join(to_line(each.uri or each.id) for each in bound[:3])
        raise ConfigError(f"the address, user or speaker of {places} has the name; forget these documents first")
    ids = [each.document.id for each in named]
    return Receipt() if is_dry else memory.remove_statements(names, documents=ids, user=user)


def _list_chosen(memory: Waylore, planned: Receipt, user: str, *, is_expired: bool) -> list[Document]:
    """Return the documents of a receipt; expired ones, which may be of any user, by their ids only."""
    if is_expired:
        return [Document(id_) for id_ in planned.documents]
    chosen = frozenset(planned.documents)
    return [document for document in list_under(memory, "", user) if document.id in chosen]


def _confirm(documents: Sequence[Document], named: Sequence[NamedDocument], *, only_statements: bool) -> None:
    """Ask for confirmation at a terminal."""
    if sys.stdin.isatty():
        lines = _list_statements(named) if named else figures.list_documents(documents)
        Console(stderr=True, highlight=False).print(Group(*lines))
        count = shown.count(len(documents), "document")
        typer.confirm(
            f"Remove these statements of {count}?" if only_statements else f"Forget {count}?", abort=True, err=True
        )


def _list_statements(named: Sequence[NamedDocument]) -> Iterator[Text]:
    """Yield each document with its statements about a name."""
    for each in named[: figures.MAX_LISTED]:
        yield Text(f"  {to_line(each.document.uri or each.document.title or each.document.id)}", "bold")
        yield from (Text(f"    {to_line(statement)}") for statement in each.statements[: figures.MAX_LISTED])
    if len(named) > figures.MAX_LISTED:
        yield Text(f"  and {len(named) - figures.MAX_LISTED:,} more; --json lists them", shown.DIM)


def _ignore_files(documents: Sequence[Document]) -> list[str]:
    """Add the files of documents to `.wayloreignore` in the project's folder, or without a project in their own."""
    project = find_project_folder() or Path.cwd()
    paths = (project / unquote(get_file(each.uri)) for each in documents if each.uri)
    files = [path for path in dict.fromkeys(paths) if path.is_file()]
    for path in files:
        folder = project if project in path.parents else path.parent
        rule = "/" + SPECIAL.sub(r"\\\1", path.relative_to(folder).as_posix())
        with (folder / IGNORE_FILE).open("a+", encoding="utf-8") as rules:
            rules.seek(0)
            known = rules.read()
            if rule not in known.splitlines():
                rules.write(f"{'' if known.endswith(chr(10)) or not known else chr(10)}{rule}\n")
    return list(map(str, files))


def _print(
    receipt: Receipt,
    named: Sequence[NamedDocument],
    found: Sequence[Document],
    remains: list[str] | None,
    ignored: list[str],
    *,
    is_dry: bool,
    as_json: bool,
) -> None:
    result = {
        **wire.Receipt.of(receipt).model_dump(),
        **({} if remains is None else {"remains": remains}),
        **({"ignored": ignored} if ignored else {}),
        **({"about": [_to_dict(each) for each in named]} if named else {}),
    }
    lines = list(_list_statements(named) if named else figures.list_documents(found))
    changed = 0 if receipt.documents else len(named)
    summary = _summarise(receipt, remains, ignored, changed)
    print_result(result, Group(*(lines if is_dry else summary)), as_json)


def _name_kinds(receipt: Receipt) -> list[tuple[tuple[str, ...], str]]:
    return [
        (receipt.documents, "document"),
        (receipt.passages, "passage"),
        (receipt.entities, "entity"),
        (receipt.facts, "fact"),
    ]


def _to_dict(named: NamedDocument) -> dict[str, object]:
    document = named.document
    return {"id": document.id, "uri": document.uri, "title": document.title, "statements": list(named.statements)}


def _summarise(receipt: Receipt, remains: list[str] | None, ignored: list[str], changed: int) -> Iterator[Text]:
    """Yield lines that describe the removals; `changed` documents have lost only statements."""
    documents, passages = (shown.count(len(ids), name) for ids, name in _name_kinds(receipt)[:2])
    others = [shown.count(len(ids), name) for ids, name in _name_kinds(receipt)[2:]]
    if changed:
        yield Text(f"removed from {shown.count(changed, 'document')}: {', '.join([f'parts of {passages}', *others])}")
    else:
        yield Text(f"forgotten: {', '.join([documents, passages, *others])}")
    if receipt.unconfirmed:
        waiting = shown.count(receipt.unconfirmed, "item")
        yield Text(f"not yet removed from the search index: {waiting}; `waylore index feed` removes them", "yellow")
    for file in ignored:
        yield Text(f"ignored from now on: {to_line(file)}", shown.DIM)
    for trace in remains or ():
        yield Text(f"still stored: {to_line(trace)}", "red")
    if remains == []:
        yield Text("verified: no trace is left in any table, index or page", "green")
