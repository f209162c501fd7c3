"""Citations: from the papers that the question is about to the papers they cite (S18).

Papers that the question names, or that mention what it names, count 1, what they cite 1/2, what that cites
1/4, to the depth of the recipe; a paper cited by several gets the sum. Only the recipe's predicates are
followed, from subject to object. Similarity to the question is the hybrid ranking's affair.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from waylore.recipes import Recipe
from waylore.retrieval.fusion import weighed
from waylore.retrieval.graph.state import Asked, Reached, resolved
from waylore.retrieval.graph.walk import facts_of
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.knowledge import Fact
from waylore.types.search import FactPath, Query, Scored, Step

CITED = 0.5  # S18: what a cited paper counts of the one that cites it


def citations(asked: Asked, recipe: Recipe) -> Reads[Reached]:
    """The hybrid ranking, and papers by how direct mention and citations add up."""
    asked = yield from resolved(asked, recipe)
    direct = {id_: FactPath(name) for id_, name in asked.starts.items()}
    with asked.trace.stage("direct"):
        papers = yield from _passages(asked.query, direct, recipe)
        citing = direct | (yield from _about(asked.query, papers))
    with asked.trace.stage("walk"):
        cited, facts, counts = yield from _cited(asked.query, citing, recipe)
        named = yield from _passages(asked.query, cited, recipe, own_only=True)
        relevance = defaultdict(float, dict.fromkeys(papers, 1.0))
        for passage, entity in named.items():
            relevance[passage] += counts[entity]
            papers.setdefault(passage, entity)
    most = max(relevance.values(), default=1.0)
    scored = [Scored(id_, round(value / most, 6)) for id_, value in relevance.items()]
    ranking = tuple(sorted(scored, key=lambda s: (-s.score, s.id)))
    paths = {id_: (cited | citing)[entity] for id_, entity in papers.items()}
    return Reached(asked.links, weighed(asked.hybrid, ranking, recipe.merge), paths, facts)


def _passages(
    query: Query, entities: Mapping[str, FactPath], recipe: Recipe, *, own_only: bool = False
) -> Reads[dict[str, str]]:
    """The passages that entities are the subject of, or, if none is, those that mention them: by passage."""
    nearest = sorted(entities, key=lambda id_: (len(entities[id_].steps), id_))[: recipe.walk.max_entities]
    per_entity = recipe.walk.passages_per_entity
    listed = yield from read(Store.passages_of_entities, nearest, per_entity=per_entity, where=query.where)
    found: dict[str, str] = {}
    for id_ in nearest:
        mentions = listed.get(id_, ())
        own = [m.passage_id for m in mentions if m.is_own]
        every = [] if own_only else [m.passage_id for m in mentions]
        found |= dict.fromkeys(own or every, id_)
    return found


def _about(query: Query, papers: Mapping[str, str]) -> Reads[dict[str, FactPath]]:
    """What papers are about, as places to go on from."""
    listed = yield from read(Store.entities_of_passages, sorted(papers), per_passage=1, where=query.where)
    own = [m.entity_id for passage in sorted(listed) for m in listed[passage] if m.is_own]
    names = yield from read(Store.entities, own, where=query.where)
    return {id_: FactPath(entity.name) for id_, entity in names.items()}


def _cited(
    query: Query, citing: Mapping[str, FactPath], recipe: Recipe
) -> Reads[tuple[dict[str, FactPath], tuple[Fact, ...], dict[str, float]]]:
    """What is cited, hop by hop: the path to each, the facts that were followed, and what each counts."""
    cited: dict[str, FactPath] = {}
    facts: dict[str, Fact] = {}
    counts: dict[str, float] = defaultdict(float)
    frontier = dict(citing)
    for hop in range(1, recipe.walk.max_hops + 1):
        listed = yield from facts_of(query, sorted(frontier)[: recipe.walk.max_entities], recipe.walk)
        told = [(id_, f) for id_ in sorted(listed) for f in listed[id_]]
        outward = {f.id: f for id_, f in told if f.subject_id == id_ and f.object_id}
        outward = dict(islice(outward.items(), max(recipe.walk.max_facts - len(facts), 0)))
        facts |= outward
        reached: dict[str, FactPath] = {}
        for fact in outward.values():
            counts[fact.object_id] += CITED**hop
            before = frontier[fact.subject_id]
            reached.setdefault(fact.object_id, FactPath(before.start, (*before.steps, Step(fact))))
        frontier = {id_: path for id_, path in reached.items() if id_ not in cited and id_ not in citing}
        cited |= frontier
    return cited, tuple(facts.values()), counts
