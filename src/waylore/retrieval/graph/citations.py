"""Search by citations: from the papers that a question is about to the papers they cite (S18).

A paper that the question names, or that mentions an entity it names, counts 1; a paper it cites counts 1/2; a
paper that one cites counts 1/4, and so on to the depth of the recipe. A paper that several papers cite gets
the sum. Only the recipe's predicates are followed, from subject to object. The similarity to the question is
in the hybrid ranking only.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from waylore.recipes import Recipe
from waylore.retrieval.fusion import combine_weighted
from waylore.retrieval.graph.state import GraphQuery, GraphResult, add_same_entities
from waylore.retrieval.graph.walk import read_entity_facts
from waylore.store.protocol import Store
from waylore.store.reads import Reads, read
from waylore.types.knowledge import Fact
from waylore.types.search import GraphPath, Query, Scored, Step

CITATION_DECAY = 0.5  # S18: score of a cited paper, as a share of the paper that cites it
NAMES_PER_PAPER = 2  # an imported paper is about two entities: its title, and its arXiv number


def search_citations(question: GraphQuery, recipe: Recipe) -> Reads[GraphResult]:
    """Add papers to the hybrid ranking, by the sum of direct mentions and citations."""
    question = yield from add_same_entities(question, recipe)
    direct = {id_: GraphPath(name) for id_, name in question.starts.items()}
    with question.trace.measure("direct"):
        papers = yield from _find_papers(question.query, direct, recipe)
        citing = direct | (yield from _find_subjects(question.query, papers))
    with question.trace.measure("walk"):
        cited, facts, scores = yield from _follow_citations(question.query, citing, recipe)
        named = yield from _find_papers(question.query, cited, recipe, own_only=True)
        relevance = defaultdict(float, dict.fromkeys(papers, 1.0))
        for passage, entity in named.items():
            relevance[passage] += scores[entity]
            papers.setdefault(passage, entity)
    best = max(relevance.values(), default=1.0)
    scored = [Scored(id_, round(value / best, 6)) for id_, value in relevance.items()]
    ranking = tuple(sorted(scored, key=lambda s: (-s.score, s.id)))
    paths = {id_: (cited | citing)[entity] for id_, entity in papers.items()}
    candidates = combine_weighted(question.hybrid, ranking, recipe.merge)
    return GraphResult(question.links, candidates, question.hybrid, paths, facts)


def _find_papers(
    query: Query, entities: Mapping[str, GraphPath], recipe: Recipe, *, own_only: bool = False
) -> Reads[dict[str, str]]:
    """Find the passages about entities or, if there are none, the passages that mention them.

    The result has the entity by passage.
    """
    nearest = sorted(entities, key=lambda id_: (len(entities[id_].steps), id_))[: recipe.walk.max_entities]
    per_entity = recipe.walk.passages_per_entity
    listed = yield from read(Store.passages_of_entities, nearest, per_entity=per_entity, where=query.where)
    papers: dict[str, str] = {}
    for id_ in nearest:
        mentions = listed.get(id_, ())
        own = [m.passage_id for m in mentions if m.is_own]
        every = [] if own_only else [m.passage_id for m in mentions]
        papers |= dict.fromkeys(own or every, id_)
    return papers


def _find_subjects(query: Query, papers: Mapping[str, str]) -> Reads[dict[str, GraphPath]]:
    """Return the entities that papers are about, as starts of paths."""
    per_passage, where = NAMES_PER_PAPER, query.where
    listed = yield from read(Store.entities_of_passages, sorted(papers), per_passage=per_passage, where=where)
    own = [m.entity_id for passage in sorted(listed) for m in listed[passage] if m.is_own]
    names = yield from read(Store.entities, own, where=query.where)
    return {id_: GraphPath(entity.name) for id_, entity in names.items()}


def _follow_citations(
    query: Query, citing: Mapping[str, GraphPath], recipe: Recipe
) -> Reads[tuple[dict[str, GraphPath], tuple[Fact, ...], dict[str, float]]]:
    """Follow citations hop by hop.

    Return the path to each cited entity, the facts that were followed, and the score of each entity.
    """
    cited: dict[str, GraphPath] = {}
    facts: dict[str, Fact] = {}
    scores: dict[str, float] = defaultdict(float)
    frontier = dict(citing)
    for hop in range(1, recipe.walk.max_hops + 1):
        listed = yield from read_entity_facts(query, sorted(frontier)[: recipe.walk.max_entities], recipe.walk)
        followed = [(id_, f) for id_ in sorted(listed) for f in listed[id_]]
        outward = {f.id: f for id_, f in followed if f.subject_id == id_ and f.object_id}
        outward = dict(islice(outward.items(), max(recipe.walk.max_facts - len(facts), 0)))
        facts |= outward
        reached: dict[str, GraphPath] = {}
        for fact in outward.values():
            scores[fact.object_id] += CITATION_DECAY**hop
            before = frontier[fact.subject_id]
            reached.setdefault(fact.object_id, GraphPath(before.start, (*before.steps, Step(fact))))
        frontier = {id_: path for id_, path in reached.items() if id_ not in cited and id_ not in citing}
        cited |= frontier
    return cited, tuple(facts.values()), scores
