"""Compile the words and patterns of a language, and match them against a text.

All rules are one regular expression, whose alternatives are tried in their order. Each repetition is bounded or cannot
backtrack, so matching takes linear time.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from tomllib import loads
from typing import Any, TypeAlias

_DIGITS = {"year": r"(?:1[89]|20)\d\d", "digits": r"\d\d?"}  # kinds of every language
_SLOT = re.compile(r"\{([a-z_]\w*)(?:=(\w+))?\}")
_START, _END = r"(?<!\w)(?<!\w-)(?<!\d[./:])", r"(?!\w|[.,/:-]\d)"
_TENSES = {"future": 1, "present": 0, "past": -1}  # order of precedence for a verb that fits two patterns

_WORD = re.compile(r"\w++")
_REACH = 7  # words of an expression up to its first word of time

RuleMatch: TypeAlias = re.Match[str]


@dataclass(frozen=True, slots=True)
class TimeRule:
    """The meaning of a pattern. `groups` has the name and the kind of each value that it captures."""

    meaning: str
    groups: Mapping[str, tuple[str, str]]
    values: dict[str, Any]


class Language:
    """The words and patterns of a language; patterns are compiled when they are first needed."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._words = {kind: _split_words(entries) for kind, entries in table["words"].items()}
        self._kinds = _DIGITS | {kind: _join_words(entries) for kind, entries in table["words"].items()}
        for kind, pattern in table["patterns"].items():
            self._kinds[kind] = "|".join(filter(None, (pattern, self._kinds.get(kind))))
        self._anchors = frozenset(words.split()[-1] for kind in table["anchors"] for words in self._words[kind])
        self._starters = _list_starters(table)

    def match_rules(self, text: str) -> Iterator[tuple[TimeRule, RuleMatch]]:
        """Yield the matches of the rules from left to right, without overlaps."""
        folded, end = fold_apostrophes(text), 0
        for start in self._find_starts(folded):
            match = self._rules[0].match(folded, start) if start >= end else None
            if match:
                end = match.end()
                yield self._rules[1][str(match.lastgroup)], match

    def find_verbs(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the place and the tense of each known verb: -1 past, 0 present, 1 future."""
        for match in self._verbs.finditer(fold_apostrophes(text)):
            yield match.start(), _TENSES[str(match.lastgroup)]

    def read_values(self, rule: TimeRule, match: RuleMatch) -> dict[str, Any]:
        """Return the values that a match captures, and the values that its rule implies."""
        captured = ((name, kind, match[group]) for group, (name, kind) in rule.groups.items())
        return {name: self.read_value(kind, words) for name, kind, words in captured if words} | rule.values

    def read_value(self, kind: str, words: str) -> Any:
        """Return the value of words of a kind: from the table, or the number written in digits."""
        known = self._words.get(kind, {})
        plain = " ".join(words.lower().split())
        return known[plain] if plain in known else int("".join(filter(str.isdecimal, plain)))

    @cached_property
    def asking(self) -> re.Pattern[str]:
        """Matches questions for a time."""
        return re.compile(self._join(self._table["asks_when"]), re.IGNORECASE)

    @cached_property
    def vague(self) -> re.Pattern[str]:
        """Matches words of time that have no span of their own."""
        return re.compile(self._join(self._table["vague"]), re.IGNORECASE)

    @cached_property
    def question(self) -> re.Pattern[str]:
        """Matches the beginning of a question."""
        return re.compile(rf"\W{{0,3}}(?:{self._table['question_words']})\b", re.IGNORECASE)

    @cached_property
    def sentence_end(self) -> re.Pattern[str]:
        """Matches the end of a sentence."""
        return re.compile(self._table["sentence_end"])

    @cached_property
    def clause_end(self) -> re.Pattern[str]:
        """Matches the end of a clause."""
        return re.compile(self._table["clause_end"], re.IGNORECASE)

    @cached_property
    def _verbs(self) -> re.Pattern[str]:
        tenses = self._table["tenses"]
        return re.compile("|".join(f"(?P<{name}>{self._join(tenses[name])})" for name in _TENSES), re.IGNORECASE)

    @cached_property
    def _rules(self) -> tuple[re.Pattern[str], dict[str, TimeRule]]:
        """The pattern of all rules, and the rule of each of its outer groups."""
        rules: dict[str, TimeRule] = {}
        branches = []
        patterns = ((rule, pattern) for rule in self._table["rules"] for pattern in rule["patterns"])
        for entry, pattern in patterns:
            name, groups = f"rule{len(rules)}", dict[str, tuple[str, str]]()
            branches.append(f"(?P<{name}>{self._expand(pattern, groups, name)})")
            rules[name] = TimeRule(entry["meaning"], groups, entry.get("values", {}))
        bound = rf"(?:(?P<bound>{self._kinds['bound']})\s++)?"
        return re.compile(f"{_START}{bound}(?:{'|'.join(branches)}){_END}", re.IGNORECASE), rules

    @cached_property
    def _anchor_digits(self) -> re.Pattern[str]:
        return re.compile(f"(?:{'|'.join(self._kinds[kind] for kind in self._table['anchor_digits'])})", re.IGNORECASE)

    def _find_starts(self, text: str) -> Iterator[int]:
        """Yield the places of words that can begin an expression and are followed by a word of time."""
        pending: deque[tuple[int, int]] = deque(maxlen=_REACH)
        for number, match in enumerate(_WORD.finditer(text)):
            word = match[0].lower()
            if word in self._starters or word[0].isdecimal():
                pending.append((number, match.start()))
            if self._is_anchor(word):
                yield from (start for place, start in pending if number - place < _REACH)
                pending.clear()

    def _is_anchor(self, word: str) -> bool:
        """Return whether a word is a word of time, also in the plural, or a number that can be a date alone."""
        if word[0].isdecimal():
            return self._anchor_digits.match(word) is not None
        return word in self._anchors or word.removesuffix("s") in self._anchors

    def _join(self, patterns: Iterable[str]) -> str:
        joined = "|".join(self._expand(pattern, {}, "") for pattern in patterns)
        return rf"\b(?:{joined})(?!\w)"

    def _expand(self, pattern: str, groups: dict[str, tuple[str, str]], rule: str) -> str:
        """Return a pattern with regular expressions instead of slots, and add its groups to `groups`."""

        def expand_slot(slot: re.Match[str]) -> str:
            name, kind = slot[1], slot[2] or slot[1]
            inner = self._expand(self._kinds[kind], groups, rule)
            if name == "_":
                return f"(?:{inner})"
            group = f"{rule}_{len(groups)}"
            groups[group] = (name, kind)
            return f"(?P<{group}>{inner})"

        return _SLOT.sub(expand_slot, pattern).replace(" ", r"\s++")


@cache
def load_language(code: str) -> Language:
    """Return the compiled table of a language."""
    return Language(loads(files("waylore.spans").joinpath(f"{code}.toml").read_text("utf-8")))


def fold_apostrophes(text: str) -> str:
    """Return a text of the same length with one kind of apostrophe, as used in the tables."""
    return text.replace("'", "’")


def _list_starters(table: Mapping[str, Any]) -> frozenset[str]:
    """Return all words of a table, because each could begin an expression."""
    patterns = [pattern for rule in table["rules"] for pattern in rule["patterns"]]
    words = [words for entries in table["words"].values() for words in entries]
    return frozenset(_WORD.findall(" ".join((*patterns, *words)).lower()))


def _split_words(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {word.lower(): value for words, value in entries.items() for word in words.split("|")}


def _join_words(entries: Iterable[str]) -> str:
    """Return alternatives, longer ones first. Words with a capital need it."""
    words = sorted("|".join(entries).split("|"), key=len, reverse=True)
    return "|".join(word if word == word.lower() else f"(?-i:{word})" for word in words)
