"""Find the time of the event that a file describes: a date in its front matter, its title or its name.

Without a date it is the time of the last commit (`commits.py`). The times of reading a file, and of its last change on
disk, are not used, because copying a folder changes them.
"""

import re
from datetime import datetime
from pathlib import PurePosixPath

from waylore.dates import to_datetime
from waylore.errors import ArgumentError
from waylore.indexing.blocks import Reading
from waylore.types.identity import get_file

DATE_FIELD = "date"  # key of front matter
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")


def find_event_time(reading: Reading) -> datetime | None:
    """Return the date in the front matter of a document, else in its title, else in the name of its file."""
    field = reading.metadata.get(DATE_FIELD)
    named = (reading.title, PurePosixPath(get_file(reading.uri)).stem)
    return (_parse(field) if isinstance(field, str) else None) or next(filter(None, map(_find_date, named)), None)


def _find_date(text: str) -> datetime | None:
    found = _DATE.search(text)
    return _parse("-".join((found[1], found[3], found[4]))) if found else None


def _parse(text: str) -> datetime | None:
    try:
        return to_datetime(text)
    except ArgumentError:
        return None
