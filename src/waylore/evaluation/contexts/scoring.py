"""Score a context: whether its parts of gold pages contain the answer, and which supporting text it shows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from waylore.evaluation.contexts.questions import ContextQuestion, SupportingText, fold
from waylore.retrieval.context.render import RenderedContext

# The passages are in the last fence, each after a line with its mark and title. Lines of passages never begin like
# this.
_FENCED = re.compile(r"^<<recalled ([a-z]+)\n(.*?)\n\1>>$", re.MULTILINE | re.DOTALL)
_CITED = re.compile(r"^\[(\d+)\]([^\n]*)\n(.*?)(?=\n\n\[\d|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShownText:
    """The part of a page that a context shows: a title and a text."""

    page: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ContextScores:
    """The scores of one context, 0 to 1, and its length.

    `strict` is 1 if a gold page shows the answer. `support` is the share of gold pages with all supporting sentences.
    Each is None if the question has no answer or no support.
    """

    strict: float | None
    support: float | None
    tokens: int


def list_shown(context: RenderedContext, to_page: Callable[[str], str] = str) -> list[ShownText]:
    """Return the shown part of each source of a context, in order. `to_page` returns the page of an address."""
    fenced = [part[2] for part in _FENCED.finditer(context.text)]
    found = {int(cited[1]): cited for cited in _CITED.finditer(fenced[-1])} if fenced else {}
    if missing := [source.mark for source in context.sources if source.mark not in found]:
        raise ValueError(f"the context has no fenced text for {missing}; the measure cannot read its format")
    return [ShownText(to_page(s.uri), found[s.mark][2].strip(), found[s.mark][3]) for s in context.sources]


def score_context(question: ContextQuestion, shown: Sequence[ShownText], tokens: int = 0) -> ContextScores:
    """Return the scores of a context by its shown texts."""
    lines = [line for part in shown if part.page in question.gold for line in (part.title, part.text)]
    strict = [any(answer in fold(line) for line in lines) for answer in question.answers]
    support = [any(_is_shown(place, shown) for place in places) for places in question.support]
    return ContextScores(
        float(any(strict)) if strict else None, sum(support) / len(support) if support else None, tokens
    )


def _is_shown(place: SupportingText, shown: Sequence[ShownText]) -> bool:
    """Return whether a page is shown with all its supporting sentences, each within one part."""
    texts = [fold(part.text) for part in shown if part.page == place.page]
    return bool(texts) and all(any(sentence in text for text in texts) for sentence in place.sentences)
