"""Compute weeks, months and years, and parts of them. A week begins on Monday."""

from calendar import monthrange
from datetime import date, timedelta
from typing import TypeAlias

_MONTH_PARTS = {"early": (1, 10), "mid": (11, 20), "late": (21, 31)}  # first and last day
_YEAR_PARTS = {"early": (1, 3), "mid": (5, 8), "late": (10, 12)}  # first and last month

_WEEK = timedelta(weeks=1)
_DAY = timedelta(days=1)

Days: TypeAlias = tuple[date, date]


def measure_distance(days: Days, day: date) -> int:
    """Return the distance of a day from a span in days; 0 inside."""
    first, last = days
    return max((first - day).days, (day - last).days, 0)


def find_weekday(day: date, weekday: int, direction: int) -> date:
    """Return the nearest day with a weekday before (-1) or after (1) a day, never the day itself."""
    return day + direction * timedelta((direction * (weekday - day.weekday()) - 1) % 7 + 1)


def get_period(today: date, unit: str, step: int) -> Days:
    """Return the week, weekend, month or year of a day, moved by some steps."""
    if unit == "month":
        return get_month(today, step)
    if unit == "year":
        return cut_year(today.year + step, "")
    monday = today - today.weekday() * _DAY + step * _WEEK
    return (monday + 5 * _DAY if unit == "weekend" else monday), monday + 6 * _DAY


def get_month(today: date, step: int) -> Days:
    """Return the month of a day, moved by some steps."""
    years, month = divmod(today.month - 1 + step, 12)
    year = today.year + years
    return date(year, month + 1, 1), get_last_day(year, month + 1)


def get_last_day(year: int, month: int) -> date:
    """Return the last day of a month."""
    return date(year, month, monthrange(year, month)[1])


def cut_month(days: Days, part: str) -> Days:
    """Return the early, mid or late days of a month; all without a part."""
    first, last = days
    start, end = _MONTH_PARTS.get(part, (1, 31))
    return first.replace(day=start), last.replace(day=min(end, last.day))


def cut_year(year: int, part: str) -> Days:
    """Return the early, mid or late months of a year; all without a part."""
    first, last = _YEAR_PARTS.get(part, (1, 12))
    return date(year, first, 1), get_last_day(year, last)
