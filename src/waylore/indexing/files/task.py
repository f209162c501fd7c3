"""Define the task of adding one path: the base of its addresses, and the common fields of its documents."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from waylore.indexing.blocks import Limits
from waylore.indexing.files.addresses import UPLOAD_PLACE, Address, begin, list_beginnings, make_address
from waylore.protocols import Extractor
from waylore.types.author import Author
from waylore.types.identity import identity
from waylore.types.knowledge import Document

READING_VERSION = "4"  # increase this when reading or splitting changes; then every file is read again
SECRETS_VERSION = "1"  # increase this when more is left out; then files are read again unless secrets are kept


@dataclass(frozen=True, slots=True)
class Task:
    """A path to add; `template` has the labels, source and metadata of all its documents. `scrub` leaves secrets out.

    Paths are absolute. `uri` is the address of a single file whose path has no meaning, such as an uploaded one.
    Other addresses begin in `root`, or else in `project`, the folder that holds `waylore.toml`.
    """

    path: Path
    root: Path | None
    project: Path | None
    template: Document
    author: Author
    limits: Limits = field(default_factory=Limits)
    prune: bool = False
    uri: str = ""
    scrub: bool = True

    @property
    def folder(self) -> Path | None:
        """The folder that addresses of files below it are relative to."""
        return self.root or self.project

    @property
    def is_address_given(self) -> bool:
        """Whether the caller determines the addresses."""
        return bool(self.uri or self.root)

    def make_address(self, file: Path) -> Address:
        """Return the address of a file."""
        return Address(self.uri, UPLOAD_PLACE) if self.uri else make_address(file, self.folder)

    def list_beginnings(self, parent: Path) -> list[Address]:
        """Return the beginning of the addresses of files in a folder, followed by possible beginnings in the store."""
        return [begin(parent, self.folder), *list_beginnings(parent)]

    def compute_stamp(self, extractor: Extractor | None) -> str:
        """Return an id of all inputs that affect the result of adding a file, except for its bytes."""
        user = [self.template.user] if self.template.user else []  # files without a user or expiry keep their stamp
        expires = [str(self.template.expires)] if self.template.expires else []
        common = [sorted(self.template.labels), self.template.source, dict(self.template.metadata), *user, *expires]
        common += [{"secrets": SECRETS_VERSION}] if self.scrub else []  # rereads files that were stored with secrets
        name = extractor.name if extractor else ""
        return identity("stamp", READING_VERSION, name, json.dumps(common, sort_keys=True, default=list))
