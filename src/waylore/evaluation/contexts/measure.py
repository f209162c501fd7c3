"""Request the contexts of questions like a user, by layout, method and budget, and score each."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import NamedTuple

from waylore.engine.waylore import Waylore
from waylore.errors import ModelUnavailable, StoreUnavailable
from waylore.evaluation.contexts.questions import ContextQuestion
from waylore.evaluation.contexts.scoring import ContextScores, list_shown, score_context
from waylore.evaluation.contexts.sources import ContextSource
from waylore.evaluation.run import Progress
from waylore.protocols import CountTokens
from waylore.providers.tokens import create_counter
from waylore.retrieval.context.block import Layout
from waylore.retrieval.context.render import RenderedContext, count_hits
from waylore.text import estimate_tokens
from waylore.types.search import SearchResult


class ContextSetting(NamedTuple):
    """The parameters of a requested context."""

    layout: Layout
    method: str
    budget: int


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """The contexts to request, and the counter of their tokens."""

    layouts: Sequence[Layout]
    methods: Sequence[str]
    budgets: Sequence[int]
    count: CountTokens

    @property
    def settings(self) -> list[ContextSetting]:
        """All combinations, with the budgets of a layout and method next to each other."""
        return [ContextSetting(*each) for each in product(self.layouts, self.methods, self.budgets)]


Measured = Mapping[ContextSetting, Mapping[str, ContextScores]]  # by id of the question


def choose_counter() -> tuple[CountTokens, str]:
    """Return an exact counter and its name; the estimate if the extra is not installed or has no vocabulary."""
    try:
        return create_counter(), "o200k"
    except ModelUnavailable:
        return estimate_tokens, "the estimate"


def measure_source(source: ContextSource, plan: ContextPlan, progress: Progress = lambda *_: None) -> Measured:
    """Measure the questions of an open source, each at its own time."""
    scores: dict[ContextSetting, dict[str, ContextScores]] = {setting: {} for setting in plan.settings}
    for done, question in enumerate(source.questions, 1):
        for setting, context in list_contexts(source.open_at(question.at), question, plan):
            shown = list_shown(context, source.to_page)
            scores[setting][question.id] = score_context(question, shown, context.tokens)
        progress(done, len(source.questions))
    return scores


def list_contexts(
    memory: Waylore, question: ContextQuestion, plan: ContextPlan
) -> Iterator[tuple[ContextSetting, RenderedContext]]:
    """Yield the contexts of a question."""
    find = cache(partial(_search, memory, question))
    for setting in plan.settings:
        result = find(setting.method, count_hits(setting.budget))
        yield setting, memory.context(result, layout=setting.layout, max_tokens=setting.budget, count=plan.count)


def _search(memory: Waylore, question: ContextQuestion, method: str, top_k: int) -> SearchResult:
    result = memory.search(question.text, top_k=top_k, where=question.where, method=method, record_use=False)
    if result.missing:
        raise StoreUnavailable(f"{question.id} has an incomplete answer ({'; '.join(result.missing)}); run it again")
    return result


def join_measured(several: Iterable[Measured]) -> Measured:
    """Join the measurements of several memories."""
    joined: dict[ContextSetting, dict[str, ContextScores]] = defaultdict(dict)
    for measured in several:
        for setting, scores in measured.items():
            joined[setting].update(scores)
    return joined
