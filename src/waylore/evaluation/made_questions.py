"""Make questions from the facts of a collection, for `waylore tune`.

Two facts in a row give a question: of "Quarry stores Sessions" in one passage and "Mara wrote Quarry" in another, "What
wrote of what stores Sessions?" has both passages as its answer. The name between the facts is left out, and also every
third word of the predicates, because a question that repeats a statement is found by its words alone. Some questions
have a third fact. They are easier than questions of people. Equal collections give equal questions.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from waylore.store.protocol import Store
from waylore.types.knowledge import Entity, Fact

MAX_DOCUMENTS = 2_000  # documents whose facts begin a question; ids are hashes, so the first ones are a random sample
MAX_PASSAGES = 8  # maximum passages with a name in a question, and with the omitted name
FACTS_PER_PASSAGE = 50
DROPPED = 0.3  # share of the words of a predicate that is left out
THIRD = 0.3  # share of the questions with a third fact, if there is one
SEED = 5


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question, and the passages that answer it together."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeadingFact:
    """A fact of a passage that leads from one entity to another."""

    fact: Fact
    start: Entity
    end: Entity


def make_questions(store: Store, limit: int) -> list[MadeQuestion]:
    """Make at most `limit` questions, all different."""
    chance = random.Random(SEED)  # noqa: S311 # nosec B311
    facts = [fact for document in islice(store.export(), MAX_DOCUMENTS) for fact in document.facts if fact.object_id]
    chance.shuffle(facts)
    made: dict[str, MadeQuestion] = {}
    for fact in facts:
        if len(made) == limit:
            break
        question = _make_question(store, fact, chance)
        if question is not None:
            made.setdefault(question.text, question)
    return list(made.values())


def _make_question(store: Store, fact: Fact, chance: random.Random) -> MadeQuestion | None:
    """Return a question that begins with a fact; None if no other passage has a fact about one of its ends."""
    first = _take_step(store, fact, chance)
    second = first and _find_next(store, first, [first.fact.passage_id], chance)
    if first is None or second is None:
        return None
    steps = [first, second]
    third = _find_next(store, second, [step.fact.passage_id for step in steps], chance)
    if third is not None and chance.random() < THIRD:
        steps.append(third)
    asked = " of what ".join(_drop_words(step.fact.predicate, chance) for step in reversed(steps[1:]))
    text = f"What {asked} of what {first.start.name} {_drop_words(first.fact.predicate, chance)}?"
    return MadeQuestion(text, frozenset(step.fact.passage_id for step in steps))


def _take_step(store: Store, fact: Fact, chance: random.Random) -> LeadingFact | None:
    """Return the step from one end of a fact to the other, in a random direction."""
    known = store.entities(fact.ends)
    ends = [known[id_] for id_ in fact.ends if id_ in known]
    if len(ends) < len(("subject", "object")) or ends[0].id == ends[1].id:
        return None
    start, end = chance.sample(ends, 2)
    return LeadingFact(fact, start, end) if start.passages <= MAX_PASSAGES else None


def _find_next(store: Store, step: LeadingFact, used: Sequence[str], chance: random.Random) -> LeadingFact | None:
    """Return a step from the end of another step, in a passage that is not used yet."""
    if step.end.passages > MAX_PASSAGES or any(map(str.isdigit, step.end.name)):
        return None
    facts = list(_list_facts(store, step, used))
    if not facts:
        return None
    fact = chance.choice(facts)
    [other] = [id_ for id_ in fact.ends if id_ != step.end.id]
    found = store.entities([other])
    return LeadingFact(fact, step.end, found[other]) if other in found else None


def _list_facts(store: Store, step: LeadingFact, used: Sequence[str]) -> Iterator[Fact]:
    """Yield the facts of other passages about the end of a step that do not mention its start."""
    mentions = store.passages_of_entities([step.end.id], per_entity=MAX_PASSAGES)
    mentioned = [mention for mention in mentions.get(step.end.id, ()) if mention.passage_id not in used]
    own = [mention.passage_id for mention in mentioned if mention.is_own]
    passages = own or [mention.passage_id for mention in mentioned]
    for facts in store.facts_of_passages(passages, per_passage=FACTS_PER_PASSAGE).values():
        for fact in facts:
            others = {*fact.ends} - {step.end.id}
            if fact.is_typed and step.end.id in fact.ends and len(others) == 1 and step.start.id not in others:
                yield fact


def _drop_words(predicate: str, chance: random.Random) -> str:
    """Return a predicate without some of its words, but never without all."""
    kept = [word for word in predicate.split() if chance.random() > DROPPED]
    return " ".join(kept) or predicate
