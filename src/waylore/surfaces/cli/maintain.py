"""`waylore forget`, `export`, `reembed` and `eval`: what is done with a collection that is there.

Forgetting names documents by identity, by address, or by the folder they came from.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.text import Text

from waylore.engine.waylore import Waylore
from waylore.errors import ConfigError, NotFound
from waylore.store.urls import open_store
from waylore.surfaces import wire
from waylore.surfaces.cli.options import InCollection, StoreAt, looking_at, settings_of
from waylore.surfaces.open import embedder_of
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, progressing, stoppable, tell, told_errors
from waylore.types.identity import file_of
from waylore.types.knowledge import Document
from waylore.types.results import Receipt

PAGE = 1_000


def forget(
    documents: Annotated[
        list[str], typer.Argument(help="Identities, addresses, or folders that end in /.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read the whole store for what is left.")] = False,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Forget documents, and tell what went.

    With them goes all that nothing else supports. At a terminal you are asked first.
    """
    with looking_at(store, collection) as memory:
        meant = [document for name in documents for document in _meant(memory, name)]
        if not yes:
            _ask(meant)
        receipt = memory.forget(*(document.id for document in meant))
        remains = list(memory.verify_forgotten(receipt)) if verify else None
    told = wire.Receipt.of(receipt).model_dump()
    verified = {} if remains is None else {"remains": remains}
    tell({**told, **verified}, Group(*_gone(receipt, remains)), as_json)
    if remains:
        raise typer.Exit(1)


def _meant(memory: Waylore, name: str) -> list[Document]:
    """The documents of an identity, an address (a file's rows too), or a folder."""
    listed = _listed(memory, name)
    if not name.endswith("/"):
        listed = (document for document in listed if name in (document.uri, file_of(document.uri)))
    found = list(listed)
    if not found:
        try:
            found = [memory.get(name).document]
        except NotFound as error:
            raise NotFound(
                f"no document {name}: `waylore search --json` tells identities and addresses"
            ) from error
    return found


def _listed(memory: Waylore, under: str) -> Iterator[Document]:
    last: Document | None = None
    while page := memory.documents(under=under, after=last, limit=PAGE):
        yield from page
        last = page[-1]


def _ask(meant: list[Document]) -> None:
    """At a terminal, make sure."""
    if sys.stdin.isatty():
        Console(stderr=True, highlight=False).print(Group(*figures.documents(meant)))
        typer.confirm(f"Forget {shown.many(len(meant), 'document')}?", abort=True, err=True)


def _gone(receipt: Receipt, remains: list[str] | None) -> Iterator[Text]:
    passages, entities, facts = map(len, (receipt.passages, receipt.entities, receipt.facts))
    counts = (
        shown.many(passages, "passage"),
        shown.many(entities, "entity"),
        shown.many(facts, "fact"),
    )
    yield Text(f"forgotten: {shown.many(len(receipt.documents), 'document')}, {', '.join(counts)}")
    for left in remains or ():
        yield Text(f"left: {shown.line(left)}", "red")
    if remains == []:
        yield Text("verified: nothing of it is left in any table, index or page", "green")


def export(
    file: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    store: StoreAt = "",
    collection: InCollection = "",
    as_json: AsJson = False,
) -> None:
    """Write everything to a file; `waylore import` reads it.

    Lines of JSON, vectors included: the same knowledge gives the same bytes.
    """
    with looking_at(store, collection) as memory, stoppable("Run the same again."):
        if file.exists() and not force:
            raise ConfigError(f"{file} is there already: name another, or say --force")
        unfinished = file.with_name(f"{file.name}.part")  # so that the file is whole, or not there
        of = memory.stats().documents
        with progressing(f"exporting to {file.name}") as show:
            try:
                written = memory.export(unfinished, progress=lambda done: show(done, of, f"{done:,}/{of:,}"))
            except OSError as error:
                raise ConfigError(f"{file} cannot be written: {error}") from error
        unfinished.replace(file)
        tell(
            {"file": str(file), "documents": written},
            f"{shown.many(written, 'document')} in {file}",
            as_json,
        )


def reembed(store: StoreAt = "", collection: InCollection = "", as_json: AsJson = False) -> None:
    """Give a collection the model that the settings name.

    Searches go on meanwhile with the old vectors. Stopped and run again, it goes on.
    """
    with told_errors(), stoppable("Run the same again: it goes on where it stopped."):
        settings = settings_of(store, collection)
        embedder = embedder_of(settings.embedding)
        if embedder is None:
            raise ConfigError(
                "no embedder is set: set embedding.provider in waylore.toml, or WAYLORE_EMBEDDING_PROVIDER"
            )
        with closing(open_store(settings.store, settings.collection)) as opened:
            known = opened.statistics()
        of = known.passages + known.entities + known.facts
        with progressing(f"embedding with {embedder.name}") as show:
            made = Waylore.reembed(
                settings.store,
                embedder=embedder,
                collection=settings.collection,
                progress=lambda done: show(done, of, f"{done:,}/{of:,}"),
            )
        told = f"{made:,} texts embedded with {embedder.name}" if made else f"it has {embedder.name} already"
        tell({"vectors": made, "model": embedder.name}, told, as_json)


def evaluate(context: typer.Context) -> None:
    """Measure how well recipes answer benchmark sets."""
    from waylore.evaluation.__main__ import main  # noqa: PLC0415 (it imports models that other commands do without)

    raise typer.Exit(main(context.args, prog="waylore eval"))


EVALUATE: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
}
