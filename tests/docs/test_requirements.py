"""Every test, setting, default, command and public name on the page of the requirements exists.

Names of the five documents stand on the left of its tables and are only counted: each must be on the page.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from waylore import Waylore, config
from waylore.protocols import Embedder
from waylore.recipes import RECIPES, Recipe, resolve_method
from waylore.retrieval.context import block, render
from waylore.settings.sections import Settings
from waylore.surfaces.cli.app import app
from waylore.types import knowledge, search

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "requirements.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")  # names the test of each promise
PARTS = {field.name for field in fields(Recipe) if is_dataclass(getattr(RECIPES["hybrid"], field.name))}
CLASSES = {
    name: kind
    for module in (config, render, knowledge, search)
    for name, kind in vars(module).items()
    if isinstance(kind, type)
} | {"Waylore": Waylore, "Embedder": Embedder}

# The classes, functions, options and fields of the five documents.
WORDS = """
MemorySearchManager searchVector searchKeyword mergeHybridResults vectorWeight textWeight combined_score alpha
beta graph_proximity_score expandWithGraph graphExpansion useGraph maxHops graphWeight maxChunks
maxGraphChunks recognizeQueryEntities generateNgrams ExtractedEntity findEntities findEntitiesByEmbedding
embeddingProvider EmbeddingProvider GraphQueryEngine getNeighborhood relTypes computeGraphScore
relationshipWeight hopDistance entityMentionCount hopDecay normalizedWeight mentionBoost kg_entities
kg_entity_chunks kg_entity_embeddings chunk_id sqlite-vec FTS5 graph-rag.ts query-entity-recognizer.ts
context-formatter.ts GraphRAGRetriever GraphRAGConfig retrieve vectorOnlyRetrieve vectorSearch maxResults
minScore fullTextSearch minGraphScore minConfidence maxTokens includeRelationships includeSources expandGraph
getEntityChunks kg_entity_sources mergeResults calculateConfidence querySpecificity entityRecognition
vectorQuality formatGraphContext graphContext EntityNeighborhood getEmbedding RetrievalResult vectorResults
graphResults entitiesRecognized expansionSkipped strength QueryEntityRecognizer recognize extractCandidates
deduplicate ContextFormatter formatEntities ContextFormatterOptions FormattedContext estimateTokens
memorySearchTool memory_search RelationalDatastore kg_chunks_fts kg_entities_fts hybrid_rag.py RAGEngine
GraphEngine _graph_retrieve _build_expansion_queries seed_ids min_weight get_neighbors graph_expansion
_rrf_fusion _recognize_entities query_with_context findAnchorEntities userId embeddingModel
vec_cosine_distance HNSW spreadingActivation anchorIds maxFacts subject_id objectId objectValue predicate
staged confirmed scoreFact rankFacts sourceWeights user_edit system conversation lastAccessed gracePeriodWeeks
decayFactor accessCount usageBoost statusWeight constructNarrative TTL pre-warming GraphRAGSystem
SemanticMemory MAGMAMemory RetrievalMethod.VECTOR RetrievalMethod.GRAPH RetrievalMethod.HYBRID agentic
AgenticRAG decide_method VectorStore _generate_embedding cosine_similarity GraphRetriever search_depth
_extract_concepts EdgeType.CITES HybridRetriever RRF_score add_research_findings academic_papers
github_projects arxiv_id abstract hybrid_retriever.py --query --method --load --stats text-embedding-3-large
memory_graph.py memory_system.py cross_domain_tracker.py NetworkX Pinecone Weaviate Milvus
""".split()


def items(kind: str) -> Iterator[str]:
    """Yield the items of the requirements that begin with a word, such as "Tests"."""
    for section in re.split(r"^### S", PAGE, flags=re.MULTILINE)[1:]:
        listed = section.partition("\n## ")[0]
        yield from re.findall(rf"^- ({kind}\b.*?)(?=^- |\n\n|\Z)", listed, re.MULTILINE | re.DOTALL)


def ours() -> list[str]:
    """Return the words in code style that are ours: all but the left column of the tables."""
    lines = [line.rpartition(" | ")[2] if line.startswith("|") else line for line in PAGE.splitlines()]
    text = re.sub(r"^```.*?^```$", "", "\n".join(lines), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", text)


def settings() -> list[tuple[str, str, object]]:
    """Return each setting with its recipe, or class, and its default."""
    found = []
    for item in items("Settings"):
        owner = re.match(r"Settings \(`(\w+)`\):", item)
        pairs = re.findall(r"`([\w.]+) = (.+?)`", item)
        assert owner or not pairs, item
        found += [(owner[1], name, ast.literal_eval(value)) for name, value in pairs] if owner else []
    return found


def test_every_requirement_has_its_section_and_a_test() -> None:
    assert re.findall(r"^### (S\d+) \w", PAGE, re.MULTILINE) == [f"S{number}" for number in range(1, 22)]
    assert len(list(items("Tests"))) == len(list(items("Call"))) + 1 == 21, "S3 has settings, no call"


@pytest.mark.parametrize("test", sorted(set(re.findall(r"tests/[\w/]+\.py(?:::\w+)?", PAGE + README))))
def test_tests_exist(test: str) -> None:
    path, _, name = test.partition("::")
    assert re.search(rf"^(?:async )?def {name or 'test_'}", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_every_test_is_named() -> None:
    assert all(re.search(r"`tests/[\w/]+\.py::\w+`", item) for item in items("Tests"))


@pytest.mark.parametrize(("owner", "name", "default"), settings())
def test_settings_have_their_defaults(owner: str, name: str, default: object) -> None:
    whole: Any = RECIPES[owner] if owner in RECIPES else getattr(config, owner)()
    assert attrgetter(name)(whole) == default


@pytest.mark.parametrize("word", sorted({word for word in ours() if re.match(r"[a-zA-Z.]+\.\w", word)}))
def test_names_exist(word: str) -> None:
    first, *rest = re.match(r"[\w.]+", word)[0].split(".")  # type: ignore[index]
    if first == "waylore" and rest != ["toml"]:
        assert resolve(".".join([first, *rest]))
    elif first == "memory":
        check_call(rest[0], word)
    elif first in CLASSES:
        assert has(CLASSES[first], rest[0])
    elif first in PARTS:
        assert has(type(getattr(RECIPES["hybrid"], first)), rest[0])
    elif first in Settings.model_fields:
        assert rest[0] in type(getattr(Settings(), first)).model_fields


def resolve(path: str) -> object:
    """Import a module, or a name of one."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def check_call(verb: str, word: str) -> None:
    """Check a method of the facade, and the keywords of a call."""
    known = inspect.signature(getattr(Waylore, verb)).parameters
    assert set(re.findall(r"[(,] ?(\w+)=", word)) <= known.keys()


def has(kind: type, name: str) -> bool:
    """Return whether a class has a field or an attribute."""
    return hasattr(kind, name) or (is_dataclass(kind) and name in {field.name for field in fields(kind)})


def test_methods_and_layouts_exist() -> None:
    for method in re.findall(r'method="(\w+)"', PAGE):
        assert resolve_method(method)
    assert set(re.findall(r'layout="(\w+)"', PAGE)) <= set(get_args(block.Layout))


@pytest.mark.parametrize("word", sorted({word for word in ours() if re.match(r"waylore [a-z]", word)}))
def test_commands_and_options_exist(word: str) -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands[word.split()[1]]
    options = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"--[\w-]+", word)) <= options


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?:POST|GET) (/\w+)", PAGE))))
def test_routes_exist(path: str) -> None:
    assert f"{{collection}}{path}" in (ROOT / "docs" / "reference" / "http.md").read_text("utf-8")


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_documents_are_on_the_page(word: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", PAGE)
