"""The one rule for dates on every surface.

A time is a `datetime`, a `date`, or ISO 8601 text. Without an offset it is UTC, and a date is its first moment.
"""

from datetime import UTC, date, datetime
from typing import TypeAlias

from waylore.errors import ArgumentError

Moment: TypeAlias = datetime | date | str


def to_datetime(value: Moment, name: str = "date") -> datetime:
    """Return a time as an aware datetime; `name` is the argument that an error names."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ArgumentError(
                f"{name} must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z, got {value!r}"
            ) from error
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ArgumentError(f"{name} must be a datetime, a date or ISO 8601 text, got {type(value).__name__}")
