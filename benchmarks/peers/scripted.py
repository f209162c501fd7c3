"""Answer the prompts of peers that need a language model from the set's own triples, so that all have the same facts.

No model runs. What is measured of such a peer is its retrieval with perfect extraction, and how often it asks. A prompt is
recognised by words of its own; one that is unknown fails loudly.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.peers.adapters.frame import PeerPassage, Triple
from benchmarks.peers.server import Chat, read_content

NAME = re.compile(r"[A-Z0-9][\w'’.-]*(?:\s+(?:(?:of|the|and|de|von|van)\s+)?[A-Z0-9][\w'’.-]*)*")
FIRST_WORDS = frozenset(
    "What When Where Who Whose Whom Which Why How In On At The Is Was Were Are Did Does Do Has Have For From".split()
)
MAX_DESCRIPTIONS = 8
SUMMARY_LENGTH = 200
Passages = Sequence[PeerPassage]


def script_chat(passages: Passages) -> Chat:
    """Return a chat that knows the triples of passages."""

    def answer(request: Mapping[str, Any]) -> str:
        messages = [read_content(message) for message in request["messages"]]
        prompt = "\n".join([*messages, json.dumps(request.get("response_format", ""))])
        for sign, write in SCRIPTS.items():
            if sign in prompt:
                return write(messages, passages)
        raise ValueError(f"no script for the prompt {prompt[:500]!r}")

    return answer


def find_told(text: str, passages: Passages) -> list[PeerPassage]:
    """Return the passages whose text a prompt contains."""
    return [passage for passage in passages if passage.text in text]


def list_told_triples(text: str, passages: Passages) -> list[Triple]:
    """Return the triples of the passages whose text a prompt contains, each once."""
    return list(dict.fromkeys(triple for passage in find_told(text, passages) for triple in passage.triples))


def find_names(question: str) -> list[str]:
    """Return the names of a question: words with capitals that follow each other, without its first word if it asks."""
    found = [name.partition(" ")[2] if name.split()[0] in FIRST_WORDS else name for name in NAME.findall(question)]
    return list(dict.fromkeys(filter(None, found)))


def write_lightrag_facts(messages: Sequence[str], passages: Passages) -> str:
    """Write entities and relations in LightRAG's format of tuples."""
    rows = [row for passage in find_told(messages[-1], passages) for row in list_lightrag_rows(passage)]
    return "\n".join(["<|#|>".join(row) for row in rows] + ["<|COMPLETE|>"])


def list_lightrag_rows(passage: PeerPassage) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a passage: its entities with what is said of each, then its relations."""
    told = [(s, p, o, f"{s} {p} {o}") for s, p, o in passage.triples if s != o]
    for name in dict.fromkeys([*(name for s, _, o, _ in told for name in (s, o)), *passage.entities]):
        said = [statement for s, _, o, statement in told if name in (s, o)]
        yield "entity", name, "Other", "; ".join(said) or name
    for subject, predicate, object_, statement in told:
        yield "relation", subject, object_, predicate, statement


def write_nothing_more(_messages: Sequence[str], _passages: Passages) -> str:
    """Say that nothing was missed."""
    return "<|COMPLETE|>"


def write_lightrag_keywords(messages: Sequence[str], _passages: Passages) -> str:
    """Write the question as the high-level keyword and its names as the low-level ones."""
    question = messages[-1].rpartition("User Query: ")[2].partition("\n\n---Output---")[0].strip()
    return json.dumps({"high_level_keywords": [question], "low_level_keywords": find_names(question) or [question]})


def write_lightrag_summary(messages: Sequence[str], _passages: Passages) -> str:
    """Write the first descriptions, one after another."""
    listed = messages[-1].partition("Description List:")[2].partition("```")[2].partition("```")[0]
    rows = [json.loads(line) for line in listed.splitlines() if line.strip()]
    return "; ".join([next(iter(row.values())) for row in rows][:MAX_DESCRIPTIONS])


def write_cognee_graph(messages: Sequence[str], passages: Passages) -> str:
    """Write the nodes and edges of the passages of a prompt."""
    told = list_told_triples(messages[-1], passages)
    names = dict.fromkeys(name for s, _, o in told for name in (s, o))
    nodes = [{"id": name, "name": name, "type": "thing", "description": name} for name in names]
    edges = [
        {"source_node_id": s, "target_node_id": o, "relationship_name": p, "description": f"{s} {p} {o}"}
        for s, p, o in told
    ]
    return json.dumps({"nodes": nodes, "edges": edges})


def write_cognee_summary(messages: Sequence[str], _passages: Passages) -> str:
    """Write the beginning of a text."""
    return json.dumps({"summary": messages[-1][:SUMMARY_LENGTH], "description": ""})


def keep_hipporag_facts(messages: Sequence[str], _passages: Passages) -> str:
    """Keep every fact that HippoRAG asks about."""
    asked = messages[-1].partition("[[ ## fact_before_filter ## ]]\n")[2].partition("\n\nRespond with")[0]
    return f"[[ ## fact_after_filter ## ]]\n{asked}\n\n[[ ## completed ## ]]"


def write_hindsight_facts(messages: Sequence[str], passages: Passages) -> str:
    """Write each triple of the passages of a prompt as a fact, with its two names as entities."""
    unknown = dict.fromkeys(("when", "where", "who", "why"), "N/A")
    facts = [
        {"what": f"{s} {p} {o}", **unknown, "fact_type": "world", "entities": list(dict.fromkeys((s, o)))}
        for s, p, o in list_told_triples(messages[-1], passages)
    ]
    return json.dumps({"facts": facts})


SCRIPTS: dict[str, Callable[[Sequence[str], Passages], str]] = {
    "Based on the last extraction task": write_nothing_more,
    "---Input Text---": write_lightrag_facts,
    "high_level_keywords": write_lightrag_keywords,
    "Description List:": write_lightrag_summary,
    "[[ ## fact_before_filter ## ]]": keep_hipporag_facts,
    "source_node_id": write_cognee_graph,
    "self-contained facts": write_cognee_summary,
    "Extract facts from the following chunk.": write_hindsight_facts,
}
