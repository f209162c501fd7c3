"""Leave secrets out of everything that one call adds, and count them: texts, fields, facts and messages."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from waylore.indexing.secrets.kinds import PASSWORD_KEYS, SECRET_KEYS, check_password, check_token
from waylore.indexing.secrets.leave_out import CleanText, Secret, keep_all, leave_out
from waylore.lengths import MAX_TITLE
from waylore.types.knowledge import NewFact
from waylore.types.messages import Message

MIN_LENGTHS = {"password": 4, "secret": 16}  # nosec B105
MIN_CARD = 10**12  # a smaller number is not a card number
_PASSWORD_KEY = re.compile(rf".*{PASSWORD_KEYS}", re.IGNORECASE)
_SECRET_KEY = re.compile(rf".*{SECRET_KEYS}", re.IGNORECASE)


class Sieve:
    """Leaves secrets out of the texts of one call. Each distinct secret counts once."""

    def __init__(self, find: Callable[[str], CleanText]) -> None:
        self._find = find
        self._seen: set[tuple[str, str]] = set()

    @property
    def left_out(self) -> dict[str, int]:
        """The number of different secrets of each kind that were left out so far."""
        return dict(sorted(Counter(kind for kind, _ in self._seen).items()))

    def fork(self) -> "Sieve":
        """Return a copy of the sieve that counts separately."""
        other = Sieve(self._find)
        other._seen |= self._seen
        return other

    def take(self, text: str) -> CleanText:
        """Return a text without secrets."""
        clean = self._find(text)
        self.count(text, clean)
        return clean

    def count(self, text: str, clean: CleanText) -> None:
        """Count the secrets of a text."""
        self._seen.update((secret.kind, text[secret.start : secret.end]) for secret in clean.secrets)

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        return self.take(text).text

    def clean_title(self, title: str) -> str:
        """Return a title without secrets, cut to the maximum length of a title."""
        return self.clean(title)[:MAX_TITLE]

    def has_secrets(self, texts: Iterable[str]) -> bool:
        """Return whether texts may have secrets. One check covers all texts, because most have none."""
        return bool(self._find("\n".join(texts)).secrets)

    def clean_fields(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of metadata or of a row without secrets; the name of a field may indicate a secret."""
        cleaned: Mapping[str, Any] = self.clean_row(fields)
        return cleaned

    def clean_row(self, row: Any) -> Any:
        """Return a value, such as a row of a file, without the secrets in it, nested values included."""
        leaves = list(_list_leaves(row))
        is_named = self.is_on and any(get_field_kind(key) for key, _ in leaves)
        return self._clean_value(row, "") if is_named or self.has_secrets(text for _, text in leaves) else row

    def _clean_value(self, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {name: self._clean_value(each, name) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean_value(each, key) for each in value]
        if isinstance(value, str) or _is_long_number(value):
            clean = self._clean_field(str(value), key)
            return value if clean == str(value) else clean
        return value

    def _clean_field(self, value: str, key: str) -> str:
        kind = find_field_kind(key, value) if self.is_on else ""
        if not kind:
            return self.clean(value)
        self._seen.add((kind, value))
        return Secret(0, len(value), kind).mark

    def clean_cell(self, column: str, cell: str) -> tuple[str, str]:
        """Return the name of a column and a cell without secrets."""
        return self.clean(column), self._clean_field(cell, column)

    @property
    def is_on(self) -> bool:
        """Whether secrets are left out."""
        return self._find is not keep_all

    def clean_fact(self, fact: NewFact) -> NewFact:
        """Return a fact without secrets."""
        words = (fact.subject, fact.predicate, fact.object, fact.statement, fact.subject_type, fact.object_type)
        if not self.has_secrets(words):
            return fact
        subject, predicate, object_, statement, subject_type, object_type = map(self.clean, words)
        return replace(
            fact,
            subject=subject,
            predicate=predicate,
            object=object_,
            statement=statement,
            subject_type=subject_type,
            object_type=object_type,
        )

    def clean_message(self, message: Message) -> Message:
        """Return a message without secrets."""
        return replace(message, content=self.clean(message.content), name=self.clean(message.name))


def make_sieve(scrub: bool) -> Sieve:
    """Make a sieve for one call; without `scrub` it leaves nothing out."""
    return Sieve(leave_out if scrub else keep_all)


@lru_cache(maxsize=4_096)
def get_field_kind(key: str) -> str:
    """Return the kind of secret that a field of this name may hold, or an empty string."""
    return "password" if _PASSWORD_KEY.fullmatch(key) else "secret" if _SECRET_KEY.fullmatch(key) else ""


def find_field_kind(key: str, value: str) -> str:
    """Return the kind of secret that a field holds according to its name, or an empty string."""
    kind = get_field_kind(key)
    length = check_password(value) if kind == "password" else check_token(value) if kind else 0
    return kind if length >= MIN_LENGTHS.get(kind, 1) else ""


def _list_leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts and long numbers in a value, each with the name of its field."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _list_leaves(each, name)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_leaves(each, key)
    elif isinstance(value, str) or _is_long_number(value):
        yield key, str(value)


def _is_long_number(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= MIN_CARD
