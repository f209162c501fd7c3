"""`waylore load`: load a folder or a bucket with many processes, here or on a Ray cluster."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from waylore.engine import arguments
from waylore.engine.answers import describe_mismatch
from waylore.errors import ConfigError, ModelMismatch
from waylore.fence import to_line
from waylore.indexing.blocks import Limits
from waylore.indexing.files.addresses import locate
from waylore.indexing.files.progress import AddReport, Progress
from waylore.indexing.files.task import Task
from waylore.indexing.loading.job import LoadJob, LoadModels, LoadRunner
from waylore.indexing.loading.load import Start, load_files
from waylore.indexing.loading.sources import is_url
from waylore.indexing.secrets.sieve import make_sieve
from waylore.project import find_project_folder
from waylore.settings.sections import EmbeddingSettings, ExtractionSettings, Settings
from waylore.store.protocol import Store
from waylore.store.urls import open_store, parse_url
from waylore.surfaces.cli.add import Labels, Pairs, check_labels, print_report
from waylore.surfaces.cli.options import (
    CollectionName,
    Expires,
    StoreUrl,
    load_settings,
    read_metadata,
)
from waylore.surfaces.cli.setup import set_up_if_unset
from waylore.surfaces.open import create_embedder, create_extractor, defer_embedder
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, report_errors, show_progress
from waylore.system import count_cores
from waylore.types.author import OWNER
from waylore.types.knowledge import Document, Metadata

WRITERS = 2  # writers for each cell on a server; writers of one collection take turns


def load(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="File, folder, or URL such as s3://bucket/folder.", show_default=False),
    ],
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Address of a Ray cluster, HOST:PORT or auto; without it, this machine.",
        ),
    ] = "",
    workers: Annotated[
        int,
        typer.Option("--workers", metavar="N", min=0, help="Number of processes that embed; 0 for one per processor."),
    ] = 0,
    writers: Annotated[
        int,
        typer.Option(
            "--writers", metavar="N", min=0, help="Maximum number of writers per cell; 0 for 2, or 1 for a SQLite file."
        ),
    ] = 0,
    label: Labels = [],  # noqa: B006
    metadata: Pairs = [],  # noqa: B006
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Base folder of addresses; that of waylore.toml if absent. Other files get absolute paths.",
        ),
    ] = None,
    expires: Expires = None,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Load a folder or a bucket with many processes, on this machine or on a Ray cluster.

    It stores the same documents as `waylore add`. With several collections (`-c a,b,c`), each document goes to one of
    them. Run the same command again to continue an interrupted run.

    Example: `waylore load s3://bucket/papers --cluster auto --store postgresql://…`
    """
    with report_errors(), ExitStack() as opened:
        check_labels(label)
        _check_source(source, root)
        set_up_if_unset(store, collection)
        settings = load_settings(store, collection)
        names = tuple(dict.fromkeys(filter(None, settings.collection.removeprefix("+").split(","))))
        stores = [opened.enter_context(closing(open_store(settings.store, name))) for name in names]
        _check_model(settings, stores)
        cells, is_file = _find_cells(settings.store, names)
        start = _choose_runner(cluster, workers, _count_writers(writers, is_file), is_file)
        job = _make_job(settings, source, root, label, read_metadata(metadata), expires, names, cells)
        with handle_interrupt("Run the same command again to continue."):
            report = _load(source, job, stores, start)
        print_report(report, as_json)


def _load(source: str, job: LoadJob, stores: Sequence[Store], start: Start) -> AddReport:
    with show_progress(f"loading {to_line(source)}") as show:

        def show_files(progress: Progress) -> None:
            counts = f"{progress.files:,}/{progress.of_files:,} files  {progress.passages:,} passages"
            show(progress.bytes, progress.of_bytes, counts)

        return load_files(source, job, stores, start, show_files)


def _check_source(source: str, root: Path | None) -> None:
    if is_url(source) and root:
        raise ConfigError("--root is for a path; the address of a file in a bucket is its URL")
    if not is_url(source) and not Path(source).exists():
        raise ConfigError(f"no file or folder {source}; check the path")


def _check_model(settings: Settings, stores: Sequence[Store]) -> None:
    """Raise ModelMismatch early: before files are read, not when the first batch is written."""
    embedder = defer_embedder(settings.embedding)
    for store in stores:
        if problem := describe_mismatch(store.statistics(), embedder):
            raise ModelMismatch(problem)


def _find_cells(store: str, collections: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """Return the number of the cell of each collection, and whether one of the cells is a file."""
    parsed = parse_url(store)
    if not parsed.is_cells:
        return (0,) * len(collections), parsed.is_file
    from waylore.cells.open import open_catalogue  # noqa: PLC0415 (loaded only for cells)

    with closing(open_catalogue(store)) as catalogue:
        placements, known = catalogue.find_placements(collections), catalogue.get_cells()
    names = [placements[name].cell for name in collections]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names), any(parse_url(known[name].url).is_file for name in names)


def _count_writers(wanted: int, is_file: bool) -> int:
    if is_file and wanted > 1:
        raise ConfigError(f"--writers {wanted}: a SQLite file has one writer; leave it out, or use PostgreSQL")
    return wanted or (1 if is_file else WRITERS)


def _choose_runner(cluster: str, workers: int, writers: int, is_file: bool) -> Start:
    """Return the function that starts the processes of a load."""
    if cluster and is_file:
        raise ConfigError("--cluster needs a store on a server, which all its nodes reach: use postgresql://…")

    def start(job: LoadJob, stores: Sequence[Store]) -> LoadRunner:
        if cluster:
            from waylore.indexing.loading.cluster import ClusterRunner  # noqa: PLC0415 (an extra)

            return ClusterRunner(job, address=cluster, workers=workers, writers=writers)
        from waylore.indexing.loading.machine import MachineRunner  # noqa: PLC0415 (as above)

        return MachineRunner(job, stores, workers=workers or count_cores(), writers=writers)

    return start


def _make_job(
    settings: Settings,
    source: str,
    root: Path | None,
    labels: Sequence[str],
    metadata: Metadata,
    expires: datetime | None,
    collections: tuple[str, ...],
    cells: tuple[int, ...],
) -> LoadJob:
    path, folder = (Path(), None) if is_url(source) else locate(Path(source), root)
    scrub = settings.secrets.is_scrubbed(collections[0])
    template = Document(
        id="",
        source="file",
        metadata=make_sieve(scrub).clean_fields(arguments.to_metadata(metadata)),
        labels=arguments.to_labels(labels),
        recorded_at=datetime.now(UTC),
        expires=expires,
    )
    limits = Limits(seconds=settings.files.seconds)
    task = Task(path, folder, find_project_folder(), template, OWNER, limits, scrub=scrub)
    embedding = settings.embedding.model_copy(update={"threads": settings.embedding.threads or 1})  # per process
    return LoadJob(
        task,
        task.compute_stamp(create_extractor(settings.extraction)),
        partial(make_models, embedding, settings.extraction),
        partial(open_store, settings.store),
        collections,
        cells,
    )


def make_models(embedding: EmbeddingSettings, extraction: ExtractionSettings) -> LoadModels:
    """Make the models of a process that prepares documents."""
    return LoadModels(create_embedder(embedding), create_extractor(extraction))
