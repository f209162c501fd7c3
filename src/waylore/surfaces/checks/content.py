"""The deep checks of `waylore doctor`: every document against its digest, and the tables and indexes of a server."""

from collections.abc import Iterator
from contextlib import closing

from waylore.cells.open import open_catalogue
from waylore.errors import WayloreError
from waylore.service.integrity import list_disagreements
from waylore.settings.sections import Settings
from waylore.store.urls import open_store, parse_url
from waylore.surfaces.checks.findings import RESTORE, Finding

MAX_LINES_SHOWN = 10
SERVER_TIMEOUT_SECONDS = 5
INSTALL_AMCHECK = "run CREATE EXTENSION amcheck in the database as a superuser; PostgreSQL brings it along"
GRANT_AMCHECK = "run the doctor as a superuser, or grant its role EXECUTE on the functions of amcheck"


def check_content(settings: Settings) -> Iterator[Finding]:
    """Compare every document of the collection with its digest, and indexes and counts with the documents."""
    remedy = "restore a backup with `waylore restore`" if parse_url(settings.store).is_server else RESTORE
    try:
        with closing(open_store(settings.store, settings.collection)) as store:
            wrong = list(list_disagreements(store))
    except WayloreError as error:
        yield Finding("content", "wrong", str(error), remedy)
        return
    for line in wrong[:MAX_LINES_SHOWN]:
        yield Finding("content", "wrong", line, remedy)
    if len(wrong) > MAX_LINES_SHOWN:
        yield Finding("content", "wrong", f"{len(wrong) - MAX_LINES_SHOWN} more", remedy)
    if not wrong:
        yield Finding(
            "content", "good", "every document matches its digest, and indexes and counts agree with the documents"
        )


def check_structure(url: str) -> Iterator[Finding]:
    """Check the tables and indexes of a server, or of each server of a catalogue of cells."""
    parsed = parse_url(url)
    if parsed.is_cells:
        with closing(open_catalogue(url)) as catalogue:
            cells = list(catalogue.get_cells().values())
        for cell in cells:
            yield from check_structure(cell.url)
    elif parsed.is_server:
        yield from _check_relations(url)


def _check_relations(url: str) -> Iterator[Finding]:
    from waylore.store.postgres.verify import check_relations  # noqa: PLC0415 (optional driver)

    try:
        found = check_relations(url, wait_seconds=SERVER_TIMEOUT_SECONDS)
    except WayloreError as error:
        yield Finding("structure", "wrong", str(error), "run `waylore doctor --deep` again")
        return
    if not found.has_amcheck:
        message = "the database has no amcheck, so damaged tables and indexes may not be noticed"
        yield Finding("structure", "note", message, INSTALL_AMCHECK)
    if found.forbidden:
        yield Finding(
            "structure", "note", f"the role may not check {len(found.forbidden)} tables and indexes", GRANT_AMCHECK
        )
    for each in found.damaged[:MAX_LINES_SHOWN]:
        remedy = f"REINDEX INDEX {each.name}" if each.is_index else "restore a backup with `waylore restore`"
        yield Finding("structure", "wrong", f"{each.name} is damaged: {each.problem}", remedy)
    if len(found.damaged) > MAX_LINES_SHOWN:
        yield Finding(
            "structure",
            "wrong",
            f"{len(found.damaged) - MAX_LINES_SHOWN} more",
            "restore a backup with `waylore restore`",
        )
    if found.checked and not found.damaged:
        unknown = f"; {len(found.unknown)} of a kind that amcheck does not know" if found.unknown else ""
        yield Finding("structure", "good", f"amcheck found {found.checked} tables and indexes whole{unknown}")
