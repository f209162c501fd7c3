"""The table of hostile requests and files, each with the most processor seconds that it may cost.

The limits hold on a machine whose cores are shared: they are three times and more what a quiet machine needs. A file
counts with everything that its job does.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.hostile import files
from benchmarks.hostile.service import Target

CATS = "The cat sat. " * 25_000  # 325 kB
DEEP = b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
MANY_IDS = [f"{number:032x}" for number in range(100_000)]


@dataclass(frozen=True, slots=True)
class Attack:
    """Something hostile: what it does, its expected outcome, and its most processor seconds."""

    name: str
    run: Callable[[Target], str]
    expected: str
    most_seconds: float


def _fill(pattern: str, length: int = 1_000_000) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def _words(length: int) -> str:
    words = " ".join(f"Name{number} of thing{number * 7919 % 100_003}." for number in range(length // 20))
    return words[:length]


def _post(path: str, body: Mapping[str, Any], target: Target) -> str:
    return target.post(path, json.dumps(body).encode())


def _ask(name: str, query: str, expected: str, most: float, **options: Any) -> Attack:
    return Attack(name, partial(_post, "/search", {"query": query, **options}), expected, most)


def _add(name: str, text: str, expected: str, most: float, **options: Any) -> Attack:
    return Attack(name, partial(_post, "/documents", {"text": text, **options}), expected, most)


def _call(name: str, tool: str, expected: str, most: float, **arguments: Any) -> Attack:
    return Attack(f"MCP: {name}", lambda target: target.call_tool(tool, arguments), expected, most)


def _upload(name: str, path: str, make: Callable[[], bytes | str], expected: str, most: float) -> Attack:
    def run(target: Target) -> str:
        content = make()
        return target.upload(path, content.encode() if isinstance(content, str) else content)

    return Attack(f"file: {name}", run, expected, most)


def _facts(count: int, name_length: int, statement_length: int) -> list[dict[str, str]]:
    return [
        {
            "subject": _fill(f"Mara{number} ", name_length),
            "predicate": "needs",
            "object": _fill(f"Login{number} ", name_length),
            "statement": _fill(f"word{number} ", statement_length),
        }
        for number in range(count)
    ]


REQUESTS = (
    _ask("question of 1 MB", _fill("who knows "), "422", 2),
    _ask("longest question, all words differ", _words(8_000), "200", 15),
    _ask("longest question, one word", _fill("a ", 8_000), "200", 15),
    _ask("longest question, all names", _fill("Mara Lind Of The ", 8_000), "200", 15),
    _ask("longest question by activation", _words(8_000), "200", 15, method="activation"),
    _ask(
        "filter of 100 keys of 100 values",
        "x",
        "200",
        5,
        where={f"k{n}": [f"v{m}" for m in range(100)] for n in range(100)},
    ),
    Attack(
        "context of 100,000 tokens",
        partial(_post, "/context", {"query": _words(8_000), "max_tokens": 100_000, "top_k": 100}),
        "200",
        20,
    ),
    Attack("nested JSON", lambda target: target.post("/search", DEEP), "400", 2),
    Attack(
        "receipt of 100,000 ids",
        partial(_post, "/receipts/verify", {"documents": MANY_IDS, "passages": MANY_IDS}),
        "200",
        15,
    ),
    Attack(
        "forget 1,000 unknown addresses",
        partial(_post, "/documents/forget", {"documents": [f"no/{number}" for number in range(1_000)]}),
        "200",
        15,
    ),
    Attack("body of 20 MB", lambda target: target.post("/documents", b" " * 20_000_000), "413", 2),
    _add("text of 5 MB", _fill("who knows ", 5_000_000), "422", 3),
    _add("text of 1 MB, one sentence again and again", _fill("The login needs the session service. "), "201", 60),
    _add("text of 1 MB without a blank", _fill("x"), "201", 60),
    _add("text of 1 MB, one long name", _fill("Mara Lind "), "201", 60),
    _add("text of 1 MB of brackets", _fill("("), "201", 60),
    _add("text of 1 MB of definitions", _fill("Alpha Beta (AB), also known as "), "201", 60),
    _add("text of 1 MB, a word a line", _fill("x\n\n"), "201", 60),
    _add("text with 9 MB of metadata", "x", "422", 5, metadata={f"k{n}": ["x" * 9_000] * 10 for n in range(100)}),
    _add("memory of 325 kB", CATS, "201", 20, source="conversation"),
    _add("the same memory again", CATS, "201", 20, source="conversation"),
    _add("memory of 1 MB of one word", _fill("you "), "201", 60, source="conversation"),
    Attack("facts: 100 with long names", partial(_post, "/facts", {"facts": _facts(100, 1_000, 1_000)}), "201", 25),
    Attack("facts: 1,000 of the longest", partial(_post, "/facts", {"facts": _facts(900, 1_000, 8_000)}), "422", 3),
    Attack(
        "facts: 1,000 with long metadata",
        partial(_post, "/facts", {"facts": [["a", "is", "b"]] * 1_000, "metadata": {"a": "x" * 9_999}}),
        "422",
        3,
    ),
    _call("question of 1 MB", "memory_search", "refused", 2, query=_fill("who knows ")),
    _call("question of 1 MB for research", "search", "refused", 2, query=_fill("who knows ")),
    _call("memory of 325 kB", "memory_add", "answered", 20, text=CATS),
    _call(
        "101 facts",
        "memory_add",
        "refused",
        2,
        text="x",
        facts=[{"subject": "a", "predicate": "is", "object": "b"}] * 101,
    ),
    Attack("MCP: nested JSON", lambda target: target.post_mcp(DEEP), "refused", 2),
)
FILES = (
    _upload(
        "PDF of 20 kB, 20 MB of blanks", "a.pdf", lambda: files.make_pdf(b" " * 20_000_000 + files.DRAWN), "read", 10
    ),
    _upload(
        "PDF of 4,900 pages that share them",
        "b.pdf",
        lambda: files.make_pdf(b" " * 20_000_000 + files.DRAWN, 4_900),
        "read",
        40,
    ),
    _upload("PDF of forms within forms", "c.pdf", files.make_nested_forms, "", 62),
    _upload("PDF of 8 million operations", "d.pdf", lambda: files.make_pdf(b"q Q " * 4_000_000), "skipped", 62),
    _upload("PDF with a huge range of characters", "e.pdf", files.make_unicode_map, "skipped", 20),
    _upload(
        "PDF of 4,900 pages that share a bomb",
        "f.pdf",
        lambda: files.make_pdf(b"q Q " * 20_000_000, 4_900),
        "skipped",
        20,
    ),
    _upload(
        "DOCX of 280,000 paragraphs", "a.docx", lambda: files.make_docx(files.make_paragraph("a") * 280_000), "read", 60
    ),
    _upload(
        "DOCX with a billion words",
        "b.docx",
        lambda: files.make_docx("<w:p>&a9;</w:p>", files.make_entities()),
        "skipped",
        5,
    ),
    _upload("DOCX with 200 MB of blanks", "c.docx", lambda: files.make_docx(" " * 200_000_000), "unpacked", 10),
    _upload(
        "HTML with 100,000 attributes",
        "a.html",
        lambda: f"<p {' '.join(f'a{n}=b' for n in range(100_000))}>Hi",
        "read",
        15,
    ),
    _upload("HTML of 300,000 tags in each other", "b.html", lambda: "<div>" * 300_000 + "x", "depth", 15),
    _upload("Markdown of 100,000 brackets", "a.md", lambda: "[" * 100_000 + "]" * 100_000, "read", 15),
    _upload("Markdown of 400,000 tables", "b.md", lambda: _fill("a|b\n-|-\n", 400_000), "read", 60),
    _upload(
        "Markdown with a heading of 900 kB",
        "c.md",
        lambda: f"# {_fill('x ', 900_000)}\n\n" + "Text.\n\n" * 20_000,
        "read",
        60,
    ),
    _upload("Python of 1 MB of calls", "a.py", lambda: "f(x)\n" * 199_999, "read", 60),
    _upload("JSON of 100,000 lists in each other", "a.json", lambda: "[" * 100_000 + "]" * 100_000, "skipped", 5),
    _upload("CSV with a line of 20 MB", "a.csv", lambda: f"text\n{_fill('word ', 20_000_000)}\n", "skipped", 5),
    Attack(
        "file: cancelled while it is read",
        lambda target: target.upload_and_cancel("g.pdf", files.make_pdf(b"q Q " * 4_000_000)),
        "cancelled",
        20,
    ),
)
ATTACKS = (*REQUESTS, *FILES)
