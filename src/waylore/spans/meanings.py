"""Compute the days that an expression means. The module is independent of languages: its input is numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from waylore.spans.days import (
    Days,
    cut_month,
    cut_year,
    find_weekday,
    get_last_day,
    get_month,
    get_period,
    measure_distance,
)

_WEEK = timedelta(weeks=1)
_DAY = timedelta(days=1)
_YEARS_AROUND = 8  # a day without a year is searched in this many years before and after; 29 February is rare


@dataclass(frozen=True, slots=True)
class Expression:
    """The values of an expression, and the time and tense in which it is said."""

    said: datetime
    tense: int = 0  # -1 past, 0 present or unknown, 1 future
    year: int | None = None
    month: int | None = None
    day: int | None = None
    year2: int | None = None  # the end of a range
    month2: int | None = None
    day2: int | None = None
    weekday: int = 0
    weekday2: int = 0
    season: tuple[int, int] | None = None  # months
    holiday: tuple[int, int, int, int] | None = None  # month and day, twice
    number: int | tuple[int, int] = 1  # number of units, or the minimum and the maximum
    unit: tuple[str, int] = ("day", 1)  # a unit and its number
    sign: int = 1  # 1 for times ahead, -1 for times ago
    step: int | None = None  # -1 last, 0 this, 1 next
    year_step: int | None = None  # the same for the year of a date: "3 May last year"
    offset: int = 0  # days from today
    ordinal: int = 1  # -1 for the last
    part: str = ""
    clip: int = 0  # -1 for the days until today, 1 for the days from today

    @property
    def today(self) -> date:
        """The day on which the expression is said."""
        return self.said.date()

    @property
    def amounts(self) -> tuple[int, int]:
        """The minimum and the maximum number of units."""
        least, most = (self.number, self.number) if isinstance(self.number, int) else self.number
        return least * self.unit[1], most * self.unit[1]


# -- the calendar --------------------------------------------------------------------------------------


def _read_calendar(expression: Expression) -> Days:
    """Return a day, month, season, holiday or year, or a part of a month or year."""
    if expression.month is None and expression.season is None and expression.holiday is None:
        return cut_year(expression.year or expression.today.year, expression.part)
    if expression.year is not None:
        return _place_in_year(expression, expression.year)
    if expression.year_step is not None:
        return _place_in_year(expression, expression.today.year + expression.year_step)
    return _choose(_list_years(expression), expression)


def _read_either_order(expression: Expression) -> Days | None:
    """Return the day of 25/12/2025 or 12/25/2025. 05/03/2025 is ambiguous and has none."""
    day, month = expression.day or 0, expression.month or 0
    if day <= 12 and month <= 12 and day != month:
        return None
    return _place_in_year(replace(expression, day=max(day, month), month=min(day, month)), expression.year or 0)


def _read_range(expression: Expression) -> Days:
    """Return the days from one date to another. The first has the month and year of the second if it has none."""
    end = replace(expression, year=expression.year2, month=expression.month2, day=expression.day2)
    last = _read_calendar(end)
    month = expression.month2 if expression.month is None else expression.month
    start = replace(expression, month=month, year=last[1].year if expression.year is None else expression.year)
    first = _read_calendar(start)
    if first > last and expression.year is None:
        first = _read_calendar(replace(start, year=last[1].year - 1))
    if first > last:
        raise ValueError("the range ends before it begins")
    return first[0], last[1]


def _read_season(expression: Expression) -> Days | None:
    """Return "the summer" if a verb says which; otherwise every summer is meant."""
    return _read_calendar(expression) if expression.tense else None


def _read_seasons_ago(expression: Expression) -> Days:
    """Return "two summers ago": the summer before the last one."""
    last = _read_calendar(expression)[0].year
    return _place_in_year(expression, last - expression.amounts[0] + 1)


def _read_week_of(expression: Expression) -> Days:
    """Return the week of a day."""
    return get_period(_read_calendar(expression)[0], "week", 0)


def _read_decade(expression: Expression) -> Days:
    first = (expression.year or 0) // 10 * 10
    return date(first, 1, 1), date(first + 9, 12, 31)


def _read_nth(expression: Expression) -> Days:
    """Return the first week, the second Monday or the last weekend of a month."""
    first, last = _read_calendar(expression)
    if expression.unit[0] == "week":
        start = last - 6 * _DAY if expression.ordinal < 0 else first + (expression.ordinal - 1) * _WEEK
        return start, min(start + 6 * _DAY, last)
    is_weekend = expression.unit[0] == "weekend"
    weekday = 5 if is_weekend else expression.weekday
    if expression.ordinal < 0:
        day = last - timedelta((last.weekday() - weekday) % 7)
    else:
        day = first + timedelta((weekday - first.weekday()) % 7) + (expression.ordinal - 1) * _WEEK
    return day, day + _DAY * is_weekend


def _read_day_of_month(expression: Expression) -> Days:
    """Return "the 3rd" of the month that the tense means."""
    return _choose(_list_months(expression), replace(expression, tense=expression.tense or 1))


def _list_months(expression: Expression) -> Iterator[Days]:
    for step in range(-2, 3):
        first, last = get_month(expression.today, step)
        if (expression.day or 0) <= last.day:
            yield (first.replace(day=expression.day or 0),) * 2


def _list_years(expression: Expression) -> Iterator[Days]:
    """Yield the days of an expression in each of the years around."""
    for year in range(expression.today.year - _YEARS_AROUND, expression.today.year + _YEARS_AROUND + 1):
        try:
            yield _place_in_year(expression, year)
        except ValueError:
            continue


def _place_in_year(expression: Expression, year: int) -> Days:
    """Return the day, holiday, season or month of an expression in a year."""
    if expression.holiday is not None:
        month, day, last_month, last_day = expression.holiday
        return date(year, month, day), date(year, last_month, last_day)
    if expression.season is not None:
        first, last = expression.season
        return date(year, first, 1), get_last_day(year + (last < first), last)
    month = expression.month or 0
    if expression.day is not None:
        return (date(year, month, expression.day),) * 2
    return cut_month((date(year, month, 1), get_last_day(year, month)), expression.part)


def _choose(candidates: Iterable[Days], expression: Expression) -> Days:
    """Return the candidate that "last", "this" or "next" selects, or else the tense, or else the nearest one."""
    spans, today = list(candidates), expression.today
    if expression.step == -1:
        chosen = [days for days in spans if days[1] < today][-1:]
    elif expression.step == 1:
        chosen = [days for days in spans if days[0] > today]
    elif expression.tense < 0:
        chosen = [days for days in spans if days[0] <= today][-1:]
    elif expression.tense > 0:
        chosen = [days for days in spans if days[1] >= today]
    else:
        chosen = sorted(spans, key=lambda days: measure_distance(days, today))
    if not chosen:
        raise ValueError("the calendar has no such day")
    return chosen[0]


# -- distances -----------------------------------------------------------------------------------------


def _read_offset(expression: Expression) -> Days:
    return (expression.today + expression.offset * _DAY,) * 2


def _read_distance(expression: Expression) -> Days:
    """Return the days at a distance of some units, as exact as the unit. One week away is a single day."""
    ends = [_move(expression, expression.sign * amount) for amount in expression.amounts]
    return min(ends)[0], max(ends)[1]


def _read_distance_ahead(expression: Expression) -> Days | None:
    """Return "in two weeks", unless the verb is past: "read in two weeks" is a duration."""
    return None if expression.tense < 0 else _read_distance(expression)


def _move(expression: Expression, amount: int) -> Days:
    unit = expression.unit[0]
    if unit in {"minute", "hour"}:
        return ((expression.said + timedelta(**{f"{unit}s": amount})).date(),) * 2
    if unit == "day" or (unit == "week" and abs(amount) == 1):
        return (expression.today + timedelta(**{f"{unit}s": amount}),) * 2
    return get_period(expression.today, unit, amount)


def _read_rolling(expression: Expression) -> Days:
    """Return "the last ten days" or "the next two months", from or to today."""
    other = _shift_today(expression)
    return min(other, expression.today), max(other, expression.today)


def _read_anniversary(expression: Expression) -> Days:
    """Return "three years ago today"."""
    return (_shift_today(expression),) * 2


def _shift_today(expression: Expression) -> date:
    """Return the same day moved by some units, or the last day of the month if the month is shorter."""
    unit, amount = expression.unit[0], expression.sign * expression.amounts[1]
    if unit in {"day", "week"}:
        return expression.today + timedelta(**{f"{unit}s": amount})
    first, last = get_month(expression.today, amount * (12 if unit == "year" else 1))
    return first.replace(day=min(expression.today.day, last.day))


# -- weeks, months and years ---------------------------------------------------------------------------


def _read_period(expression: Expression) -> Days:
    """Return "last week", "the end of this month" or "later this year"."""
    days = get_period(expression.today, expression.unit[0], expression.step or 0)
    if expression.unit[0] == "month":
        days = cut_month(days, expression.part)
    if expression.unit[0] == "year":
        days = cut_year(days[0].year, expression.part)
    first, last = days
    if expression.clip:
        return (first, min(last, expression.today)) if expression.clip < 0 else (max(first, expression.today), last)
    return days


def _read_weekend(expression: Expression) -> Days:
    """Return "the weekend" that the tense means."""
    weekends = [get_period(expression.today, "weekend", step) for step in (-1, 0, 1)]
    return _choose(weekends, replace(expression, tense=expression.tense or 1))


def _read_weekday(expression: Expression) -> Days:
    """Return "last Friday", "next Friday", or the Friday before or after today that the tense means."""
    if expression.step == 1:
        return _read_weekday_of_week(expression)
    is_past = expression.step == -1 or expression.tense < 0
    return (find_weekday(expression.today, expression.weekday, -1 if is_past else 1),) * 2


def _read_weekday_of_week(expression: Expression) -> Days:
    """Return "Friday last week" or "two weeks ago on Friday"."""
    step = -expression.amounts[0] if expression.step is None else expression.step
    monday, _ = get_period(expression.today, "week", step)
    return (monday + expression.weekday * _DAY,) * 2


def _read_weekdays_ago(expression: Expression) -> Days:
    """Return "two Fridays ago"."""
    nearest = find_weekday(expression.today, expression.weekday, -1)
    return (nearest - (expression.amounts[0] - 1) * _WEEK,) * 2


def _read_weekday_range(expression: Expression) -> Days:
    """Return "from Monday to Wednesday": the last ones if the tense is past, otherwise the coming ones."""
    if expression.tense < 0:
        last = find_weekday(expression.today, expression.weekday2, -1)
        return find_weekday(last + _DAY, expression.weekday, -1), last
    first = find_weekday(expression.today, expression.weekday, 1)
    return first, find_weekday(first - _DAY, expression.weekday2, 1)


MEANINGS: Mapping[str, Callable[[Expression], Days | None]] = {
    "anniversary": _read_anniversary,
    "calendar": _read_calendar,
    "day_of_month": _read_day_of_month,
    "decade": _read_decade,
    "distance": _read_distance,
    "distance_ahead": _read_distance_ahead,
    "either_order": _read_either_order,
    "nth": _read_nth,
    "offset": _read_offset,
    "period": _read_period,
    "range": _read_range,
    "rolling": _read_rolling,
    "season": _read_season,
    "seasons_ago": _read_seasons_ago,
    "week_of": _read_week_of,
    "weekday": _read_weekday,
    "weekday_of_week": _read_weekday_of_week,
    "weekday_range": _read_weekday_range,
    "weekdays_ago": _read_weekdays_ago,
    "weekend": _read_weekend,
}
