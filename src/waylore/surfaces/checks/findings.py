"""The findings of checks of `waylore doctor`, and the remedies that several checks name."""

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "note", "wrong"]
RESTORE = "restore a backup with `waylore restore`, or save the intact documents with `waylore doctor --repair NEW`"
COMPACT = "run `waylore compact` while no other process uses the file"
ENABLE_CHECKSUMS = "stop the server, run `pg_checksums --enable` on its data folder, and start it"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: its subject, its state, a message, and the remedy for a problem."""

    subject: str
    state: State
    message: str
    remedy: str = ""
