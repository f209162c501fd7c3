"""Compare files with the store: choose their addresses, and find unchanged, moved and deleted files.

The module reads the store and writes nothing.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from waylore.indexing import pipeline
from waylore.indexing.blocks import Skipped, Source, describe_open_error
from waylore.indexing.files.addresses import Address, Fingerprint, escape, make_address, make_place
from waylore.indexing.files.batches import FileRead, SkippedFiles
from waylore.indexing.files.commits import Commit, find_commits
from waylore.indexing.files.task import Task
from waylore.store.protocol import Store
from waylore.types.identity import get_file, identity
from waylore.types.knowledge import Document

LOOKUP_SIZE = 256  # documents or files in one query


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The data for comparing a file: its address, its possible stored addresses, and their fingerprints.

    `url` is the address of a file that must be fetched first; then `path` is only its name. `version` is an id of its
    content, if the server has one.
    """

    path: Path
    size: int
    addresses: tuple[Address, ...]
    stored: Mapping[str, Fingerprint]
    commit: Commit | None = None
    url: str = ""
    version: str = ""


def compare_files(
    store: Store,
    task: Task,
    sizes: Mapping[Path, int],
    stamp: str,
    skipped: SkippedFiles,
    commits: Mapping[Path, Commit],
) -> Iterator[FileRead]:
    """Yield each file that can be opened, with its address, its fingerprint, and whether it is unchanged."""
    for file in look_up_files([store], task, sizes, commits):
        try:
            yield compare_file(file, task, stamp)
        except OSError as error:
            skipped.add(Skipped(file.addresses[0].uri, describe_open_error(error)))


def look_up_files(
    stores: Sequence[Store], task: Task, sizes: Mapping[Path, int], commits: Mapping[Path, Commit]
) -> Iterator[KnownFile]:
    """Yield the files with their stored fingerprints; a file is complete if it is complete in all of these stores."""
    beginnings: dict[Path, list[Address]] = {}
    for batch in pipeline.split_into_batches(sizes, LOOKUP_SIZE):
        possible = {path: _list_addresses(task, path, beginnings) for path in batch}
        stored = read_fingerprints(stores, {each.uri for addresses in possible.values() for each in addresses})
        for path, addresses in possible.items():
            own = {each.uri: stored[each.uri] for each in addresses if each.uri in stored}
            others = {uri: stored[uri] for known in own.values() for uri in known.former if uri in stored}
            known = (addresses[0], *(each for each in addresses[1:] if each.uri in own))
            yield KnownFile(path, sizes[path], known, {**others, **own}, commits.get(path))


def find_task_commits(task: Task, files: Collection[Path]) -> Mapping[Path, Commit]:
    """Return the last commits of the files; an uploaded file has none."""
    return {} if task.uri else find_commits(task.path if task.path.is_dir() else task.path.parent, files)


def read_fingerprints(stores: Sequence[Store], files: Collection[str]) -> dict[str, Fingerprint]:
    """Return the stored fingerprints of files. If stores disagree about a file, its fingerprint has no content."""
    answers = [store.fingerprints(sorted(files)) for store in stores]
    first = {uri: text for answer in reversed(answers) for uri, text in answer.items()}
    found = {uri: (text, Fingerprint.parse(text)) for uri, text in first.items()}
    return {
        uri: known if all(answer.get(uri) == text for answer in answers) else replace(known, content="")
        for uri, (text, known) in found.items()
    }


def compare_file(file: KnownFile, task: Task, stamp: str) -> FileRead:
    """Return a file with its address, its fingerprint, and whether it is unchanged. Uses no store; may raise OSError.

    A file with a new last commit counts as changed, because its documents have the time of the commit.
    """
    content = file.version or hash_content(file.path)
    address = _choose_address(task, file, content)
    commit = (str(file.commit),) if file.commit else ()  # files that Git does not track keep their time
    fingerprint = Fingerprint(address.place, identity("file", stamp, content, *commit))
    read = FileRead(Source(file.path, address.uri, task.limits), file.size, fingerprint)
    return _compare(read, address, file.addresses, file.stored)


def _list_addresses(task: Task, path: Path, beginnings: dict[Path, list[Address]]) -> list[Address]:
    """Return the address of a file, followed by other addresses under which it may be stored.

    Addresses of all files in a folder begin with the same text, so `beginnings` is filled once for each folder.
    """
    if task.uri:
        return [task.make_address(path)]
    if path.parent not in beginnings:
        beginnings[path.parent] = task.list_beginnings(path.parent)
    name = escape(path.name)
    return [address.append(name) for address in beginnings[path.parent]]


def _choose_address(task: Task, file: KnownFile, content: str) -> Address:
    """Return the address of a file; its absolute path if the usual address belongs to another file."""
    address = file.addresses[0]
    known = file.stored.get(address.uri)
    other = address.find_file(known.place) if known and known.place != address.place else None
    if task.is_address_given or other is None or not _differs(other, content):
        return address
    return make_address(file.path, None)


def _differs(file: Path, content: str) -> bool:
    """Return whether a file exists and has other content. If it may not be read, it counts as different."""
    try:
        return hash_content(file) != content
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except OSError:
        return True


def _compare(
    file: FileRead, address: Address, possible: Sequence[Address], stored: Mapping[str, Fingerprint]
) -> FileRead:
    """Return a file with the former addresses of its documents, and with whether it is unchanged."""
    ours = {each.uri: stored[each.uri] for each in possible if each.uri in stored and each.names(stored[each.uri])}
    known = ours.pop(address.uri, Fingerprint(address.place))
    resumed = (uri for uri in known.former if uri not in stored)
    former = tuple(dict.fromkeys([*ours, *resumed]))
    return replace(file, former=former, is_unchanged=not former and known.content == file.fingerprint.content)


# -- vanished files -------------------------------------------------------------------------------------


def find_vanished(store: Store, task: Task, existing: Sequence[Path]) -> Iterator[str]:
    """Yield the ids of documents whose files were below the path of a task and no longer exist."""
    above = [Path(task.path.anchor), *task.path.parents]
    for folder in dict.fromkeys(above if task.folder is None else [*above, task.folder]):
        if folder in above or folder == task.path or task.path in folder.parents:
            yield from _find_vanished(store, task.path, folder, existing)


def _find_vanished(store: Store, path: Path, folder: Path, existing: Sequence[Path]) -> Iterator[str]:
    """Yield the ids of vanished documents whose addresses are relative to a folder."""
    under = f"{make_address(path, folder).uri}/" if folder in path.parents else ""
    seen = {make_address(file, folder).uri for file in existing}
    for batch in pipeline.split_into_batches(pipeline.list_documents(store, under), LOOKUP_SIZE):
        files = {document.id: get_file(document.uri) for document in batch}
        stored = store.fingerprints(sorted(set(files.values()) - seen))
        gone = {uri for uri, text in stored.items() if Address(uri, make_place(folder)).names(Fingerprint.parse(text))}
        yield from (id_ for id_, file in files.items() if file in gone)


# -- stored documents -----------------------------------------------------------------------------------


def list_file_documents(store: Store, file: str) -> Iterator[Document]:
    """Yield the documents of a file: the one with its address, or the documents of its rows and parts."""
    first = store.list_documents(under=file, limit=1)
    own = (document for document in first if document.uri == file)
    return chain(own, pipeline.list_documents(store, f"{file}#") if first else ())


def hash_content(path: Path) -> str:
    """Return a hash of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
