"""The LlamaIndex retriever passes the checks of LlamaIndex's own integrations, and more.

LlamaIndex has no suite to inherit. The tests of its retrievers check the base class, scores, a large and a
small `similarity_top_k`, metadata filters, and nodes that stay distinct if their documents are.
"""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import (
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    QueryBundle,
    TextNode,
)
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from integrations.knowledge import QUESTION, open_memory
from waylore import Filter, Waylore
from waylore.errors import ConfigError
from waylore.integrations.llamaindex import WayloreRetriever


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waylore]:
    with open_memory(tmp_path_factory.mktemp("llamaindex")) as memory:
        yield memory


def list_ids(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]


def find_kinds(memory: Waylore, *filters: MetadataFilter) -> list[object]:
    asked = MetadataFilters(filters=list(filters))
    nodes = WayloreRetriever(memory, filters=asked).retrieve("login handbook")
    return [node.metadata["source"] for node in nodes]


def test_class() -> None:
    assert issubclass(WayloreRetriever, BaseRetriever)


def test_retriever_returns_hits_with_reasons(memory: Waylore) -> None:
    nodes = WayloreRetriever(memory).retrieve(QUESTION)
    hits = memory.search(QUESTION).hits
    assert [(n.node_id, n.text, n.score) for n in nodes] == [(h.passage.id, h.passage.text, h.score) for h in hits]
    assert all(node.score is not None and node.score > 0 for node in nodes)
    paths = [node.metadata["waylore"]["path"] for node in nodes]
    assert "login —needs→ session service → this passage" in [path["text"] for path in paths if path]


def test_retriever_chooses_by_default(memory: Waylore) -> None:
    searches = WayloreRetriever(memory).retrieve("`login`")[0].node.metadata["waylore"]["placements"]
    assert {placement["search"] for placement in searches} == {"keyword"}


def test_node_has_document_and_position(memory: Waylore) -> None:
    [node] = [n.node for n in WayloreRetriever(memory).retrieve(QUESTION) if n.metadata["title"] == "Login"]
    citation = node.metadata["waylore"]["citation"]
    document = node.source_node
    assert document is not None
    assert (document.node_id, node.ref_doc_id) == (citation["document_id"], citation["document_id"])
    assert document.node_type == ObjectType.DOCUMENT
    assert document.metadata["team"] == "web"
    assert set(node.relationships) == {NodeRelationship.SOURCE}
    assert (citation["start"], citation["end"]) == (0, len("The login needs the session service."))
    assert node.to_dict()["start_char_idx"] == 0


def test_prompt_has_no_explanation(memory: Waylore) -> None:
    [node] = [n.node for n in WayloreRetriever(memory).retrieve(QUESTION) if n.metadata["title"] == "Login"]
    shown = node.get_content(MetadataMode.LLM)
    assert "title: Login" in shown
    assert "source: docs/login.md" in shown
    assert "placements" not in shown
    assert "placements" not in node.get_content(MetadataMode.EMBED)


def test_nodes_round_trip_through_json(memory: Waylore) -> None:
    for found in WayloreRetriever(memory).retrieve(QUESTION):
        back = TextNode.from_json(found.node.to_json())
        assert (back.metadata, back.relationships) == (found.metadata, found.node.relationships)
        assert back.to_dict() == found.node.to_dict()


def test_top_k_limits_nodes(memory: Waylore) -> None:
    every = list_ids(WayloreRetriever(memory, similarity_top_k=20).retrieve(QUESTION))
    assert len(every) == memory.stats().passages
    for k in (1, 2, 3):
        assert list_ids(WayloreRetriever(memory, similarity_top_k=k).retrieve(QUESTION)) == every[:k]


async def test_async_retriever_returns_same(memory: Waylore) -> None:
    retriever = WayloreRetriever(memory, similarity_top_k=2)
    assert await retriever.aretrieve(QUESTION) == retriever.retrieve(QueryBundle(QUESTION))


def test_filters(memory: Waylore) -> None:
    assert find_kinds(memory, MetadataFilter(key="team", value="web")) == ["docs/login.md"]
    assert find_kinds(memory, MetadataFilter(key="year", value=2024)) == ["docs/login.md"]
    tagged = MetadataFilter(key="tags", value="ui", operator=FilterOperator.CONTAINS)
    either = MetadataFilter(key="team", value=["web", "docs"], operator=FilterOperator.IN)
    assert find_kinds(memory, tagged, either) == ["docs/login.md"]
    assert set(find_kinds(memory, either)) == {"docs/login.md", "docs/help.md"}
    assert find_kinds(memory, MetadataFilter(key="team", value=[], operator=FilterOperator.ANY)) == []


def test_filters_and_labels_apply_together(memory: Waylore) -> None:
    web = MetadataFilters(filters=[MetadataFilter(key="team", value="web")])
    anyone = Filter(labels=frozenset(), metadata={"year": 2024})
    [node] = WayloreRetriever(memory, where=anyone, filters=web).retrieve(QUESTION)
    assert node.metadata["source"] == "docs/login.md"
    outsider = WayloreRetriever(memory, where=Filter(labels=frozenset()))
    assert "docs/vault.md" not in [n.metadata["source"] for n in outsider.retrieve("vault safe")]


@pytest.mark.parametrize(
    "refused",
    [
        MetadataFilters(filters=[MetadataFilter(key="year", value=2000, operator=FilterOperator.GT)]),
        MetadataFilters(filters=[MetadataFilter(key="tags", value=["ui"], operator=FilterOperator.EQ)]),
        MetadataFilters(filters=[MetadataFilter(key="tags", value=None, operator=FilterOperator.IS_EMPTY)]),
        MetadataFilters(filters=[MetadataFilter(key="team", value="web")], condition=FilterCondition.NOT),
        MetadataFilters(filters=[MetadataFilter(key="team", value=v) for v in ("web", "docs")]),
        MetadataFilters(filters=[MetadataFilters(filters=[MetadataFilter(key="team", value="web")])]),
    ],
    ids=["greater", "equal to a list", "empty", "not", "twice", "nested"],
)
def test_unsupported_filters_raise(memory: Waylore, refused: MetadataFilters) -> None:
    with pytest.raises(ConfigError):
        WayloreRetriever(memory, filters=refused)


async def test_query_engine_uses_retriever(memory: Waylore) -> None:
    engine = RetrieverQueryEngine.from_args(WayloreRetriever(memory, similarity_top_k=2), llm=MockLLM())
    answer = engine.query(QUESTION)
    assert "The login needs the session service." in str(answer)
    assert list_ids(answer.source_nodes) == list_ids(WayloreRetriever(memory, similarity_top_k=2).retrieve(QUESTION))
    assert str(await engine.aquery(QUESTION)) == str(answer)


def test_callbacks_are_called(memory: Waylore) -> None:
    heard = LlamaDebugHandler(print_trace_on_end=False)
    retriever = WayloreRetriever(memory, similarity_top_k=1, callback_manager=CallbackManager([heard]))
    retriever.retrieve(QUESTION)
    [[start, end]] = heard.get_event_pairs(CBEventType.RETRIEVE)
    assert start.payload == {"query_str": QUESTION}
    assert end.payload is not None
    assert len(end.payload["nodes"]) == 1


def test_fusion_recognises_same_passage(memory: Waylore) -> None:
    methods: list[BaseRetriever] = [WayloreRetriever(memory, method=method) for method in ("chain", "keyword")]
    fused = QueryFusionRetriever(
        methods,
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=3,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        use_async=False,
    )
    nodes = fused.retrieve(QUESTION)
    assert len(nodes) == len(set(list_ids(nodes))) == 3
    assert nodes[0].score is not None
    assert nodes[0].score > 1 / 60  # as much as one retriever alone can give


async def test_agent_can_use_retriever_as_tool(memory: Waylore) -> None:
    tool = RetrieverTool.from_defaults(WayloreRetriever(memory, similarity_top_k=1), name="memory_search")
    told = tool("login session")
    assert "The login needs the session service." in told.content
    assert (await tool.acall("login session")).content == told.content


def test_missing_llamaindex_names_extra() -> None:
    program = "import sys; sys.modules['llama_index'] = None\nimport waylore.integrations.llamaindex"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'waylore[llamaindex]'" in done.stderr.splitlines()[-1]
