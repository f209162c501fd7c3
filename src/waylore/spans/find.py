"""Find spans of days in a text. The text is read from left to right, in linear time."""

from dataclasses import dataclass
from datetime import date, datetime, time

from waylore.spans.days import Days, measure_distance
from waylore.spans.language import Language, RuleMatch, TimeRule, fold_apostrophes, load_language
from waylore.spans.meanings import MEANINGS, Expression
from waylore.spans.sentences import Sentences

LANGUAGE = "en"
_NOON = time(12)  # time of a day without a time, so that "an hour ago" is on that day
_NOTHING = "nothing"  # meaning of rules for words that look like a time but are not one


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`, both included; `words` is the text that names them."""

    first: date
    last: date
    words: str

    def __str__(self) -> str:
        until = "" if self.first == self.last else f" to {self.last}"
        return f"{self.words} ({self.first}{until})"

    def days_from(self, day: date | datetime) -> int:
        """Return the distance of a day in days; 0 inside of the span."""
        return measure_distance((self.first, self.last), day.date() if isinstance(day, datetime) else day)


def find_spans(text: str, at: date | datetime) -> tuple[Span, ...]:
    """Return the spans that a text names, in its order; `at` is the time at which it is said or asked."""
    language = load_language(LANGUAGE)
    said = at.replace(tzinfo=None) if isinstance(at, datetime) else datetime.combine(at, _NOON)
    sentences = Sentences(text, language)
    found = []
    for rule, match in language.match_rules(text):
        days = _resolve(language, rule, match, sentences, said)
        if days:
            found.append(Span(*days, text[match.start() : match.end()]))
    return tuple(found)


def asks_when(text: str) -> bool:
    """Return whether a text asks for a time."""
    return load_language(LANGUAGE).asking.search(fold_apostrophes(text)) is not None


def tells_time(text: str) -> bool:
    """Return whether a text has an expression of time, also one without a span such as "recently"."""
    language = load_language(LANGUAGE)
    if language.vague.search(fold_apostrophes(text)):
        return True
    return any(rule.meaning != _NOTHING for rule, _ in language.match_rules(text))


def _resolve(language: Language, rule: TimeRule, match: RuleMatch, sentences: Sentences, said: datetime) -> Days | None:
    """Return the days that a match means; None if such days do not exist."""
    if rule.meaning == _NOTHING:
        return None
    values = {"tense": sentences.find_tense(match.start(), match.end())} | language.read_values(rule, match)
    try:
        days = MEANINGS[rule.meaning](Expression(said, **values))
    except (ValueError, OverflowError):  # 30 February, or a year outside of the calendar
        return None
    bound = match["bound"]
    if days and bound and sentences.is_question(match.start()):
        return _extend(days, language.read_value("bound", bound), said.date())
    return days


def _extend(days: Days, direction: int, today: date) -> Days:
    """Return the days from a span to today ("since"), or from today to a span ("until")."""
    first, last = days
    return (first, max(last, today)) if direction < 0 else (min(first, today), last)
