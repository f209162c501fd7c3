"""Find the days that a text speaks of: "last week", "on Saturday", "in March", "three days ago".

A week begins on Monday. "Next Tuesday" is the Tuesday of next week. Two weeks, months or years ago are a whole week,
month or year. Without a year or a week, the tense of the nearest verb decides: "on Saturday we met" is in the past.
In a question, "since Monday" and "until Friday" reach to or from today; in a statement they name that day.

An expression that is not understood has no span. Times of day, repetitions ("every Monday") and durations ("for two
days") have none.
"""

from waylore.spans.find import Span, asks_when, find_spans, tells_time

__all__ = ["Span", "asks_when", "find_spans", "tells_time"]
