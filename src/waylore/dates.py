"""The one rule for dates on every surface.

A time is a `datetime`, a `date`, or ISO 8601 text. Without an offset it is UTC, and a date is its first moment. A
timezone never changes what a date means. It decides which day "yesterday" was, and how times are printed.
"""

from datetime import UTC, date, datetime, time, tzinfo
from typing import TypeAlias

from waylore.errors import ArgumentError

Moment: TypeAlias = datetime | date | str
_shown: tzinfo = UTC  # the timezone of printed times, of this process


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


def find_timezone(name: str) -> tzinfo:
    """Return the timezone with an IANA name."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 (most searches need no other zone)

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as error:  # a folder of zones is an OSError
        raise ArgumentError(
            f"timezone must be an IANA name such as Europe/Berlin, got {name!r:.60}; "
            "a system without timezones needs the package tzdata"
        ) from error


def to_local(moment: datetime, timezone: tzinfo) -> datetime:
    """Return a time in a timezone; one with an offset of its own stays, because it is local already."""
    return moment if moment.utcoffset() else moment.astimezone(timezone)


def show_times_in(timezone: tzinfo) -> None:
    """Print the times of this process in a timezone."""
    global _shown  # noqa: PLW0603 (as the locale, it is of the process)
    _shown = timezone


def format_day(moment: datetime) -> str:
    """Return the day of a time as it is printed. Midnight in UTC is a date without a time, and stays that date."""
    return f"{moment if moment.timetz() == time(tzinfo=UTC) else to_local(moment, _shown):%Y-%m-%d}"


def format_time(moment: datetime) -> str:
    """Return a time as it is printed, to the second."""
    return f"{moment.astimezone(_shown):%Y-%m-%d %H:%M:%S}"
