"""YAML, TOML and JSON are read as fields; an entry of a list begins with its name."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.readers.reading import read_document, show
from waylore.indexing.chunking import find_spans

SERVICE = """# Who runs what
title: Services
services:
  - repo: granite
    name: Granite
    owner: Mara Lindqvist  # since May
    depends_on: [sessions, opal]
    leads:
      chair: {name: Kofi, since: 2021-05-01}
    # a note
    run: |
      # no comment
      make
  - name: Opal
    version: 3.10
"""


def test_yaml_is_read_as_fields(tmp_path: Path) -> None:
    found = read_document(tmp_path / "a.yaml", SERVICE)
    assert found.title == "Services"
    assert show(found) == [
        ("paragraph", "Who runs what"),
        ("field", "title: Services"),
        ("heading", "services"),
        ("heading", "name: Granite"),
        ("field", "repo: granite"),
        ("field", "owner: Mara Lindqvist"),
        ("field", "depends_on: sessions, opal"),
        ("heading", "leads"),
        ("heading", "chair"),
        ("heading", "name: Kofi"),
        ("field", "since: 2021-05-01"),
        ("paragraph", "a note"),
        ("field", "run: # no comment make"),
        ("heading", "name: Opal"),
        ("field", "version: 3.10"),
    ]
    owner, depends = found.blocks[5:7]
    assert owner.headings == ("services", "Granite")
    assert depends.cells == (("depends_on", "sessions"), ("depends_on", "opal"))
    assert [block.key for block in found.blocks if block.kind == "heading"] == ["", "name", "", "", "name", "name"]
    chair = next(block for block in found.blocks if block.headings[-1:] == ("Kofi",))
    assert (chair.about, chair.cells) == ("Granite", (("chair", "Kofi"),))


def test_toml_and_json_are_read_like_yaml(tmp_path: Path) -> None:
    toml = '# Top\nname = "box"\n[server]\n# The port\nport = 80\n[[rows]]\nid = "a"\nsize = 1.50\n'
    assert show(read_document(tmp_path / "a.toml", toml)) == [
        ("paragraph", "Top"),
        ("field", "name: box"),
        ("heading", "server"),
        ("paragraph", "The port"),
        ("field", "port: 80"),
        ("heading", "rows"),
        ("heading", "id: a"),
        ("field", "size: 1.50"),
    ]
    value = {"name": "box", "server": {"port": 80, "open": True, "note": None}, "rows": [{"id": "a", "size": 1.5}]}
    found = read_document(tmp_path / "a.json", json.dumps(value))
    assert found.title == "box"
    assert [text for _, text in show(found)] == [
        *("name: box", "server", "port: 80", "open: true", "rows", "id: a", "size: 1.5")
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", "{{ template }}\nkey: [\n"),
        ("a.toml", "key = \n"),
        ("a.yaml", "a: &x [1]\n" + "[" * 200),
        ("a.json", "[" * 200 + "1" + "]" * 200),
    ],
)
def test_what_cannot_be_parsed_is_text(name: str, content: str, tmp_path: Path) -> None:
    found = read_document(tmp_path / name, content)
    assert found.text == content


def test_file_without_suffix_is_yaml_if_every_line_is(tmp_path: Path) -> None:
    owners = '# Who may change this\n"docs/.*":\n  approvers:\n    - mara\n    - kofi\n'
    assert show(read_document(tmp_path / "OWNERS", owners)) == [
        ("paragraph", "Who may change this"),
        ("heading", "docs/.*"),
        ("field", "approvers: mara, kofi"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "Title: Plan\nOwner: Mara\n\nWe plan.\n  And more.\n",
        "all: build\n\tmake build\n",
        "FROM scratch\nRUN make\n",
        "- a list\n- of items\n",
        "key: [\n  open\n",
        "key: 'open\n  other: 1\n",
        "key: value\nother: value\n",
    ],
)
def test_other_file_without_suffix_is_plain_text(content: str, tmp_path: Path) -> None:
    assert read_document(tmp_path / "README", content).text == content


def test_aliases_are_not_expanded(tmp_path: Path) -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    found = read_document(tmp_path / "a.yaml", f"a0: &a0 [lol]\n{levels}\n")
    assert len(found.text) < 3_000


def test_parts_of_a_long_entry_name_it(tmp_path: Path) -> None:
    people = "".join(f"      - name: Person {n}\n        mail: p{n}@example.org\n" for n in range(80))
    found = read_document(tmp_path / "a.yaml", f"teams:\n  - name: Storage\n    members:\n{people}")
    texts = [found.text[start:end] for start, end, _ in find_spans(found, max_tokens=300)]
    assert len(texts) > 4
    assert all("Storage" in text for text in texts)


SCALARS = st.none() | st.booleans() | st.integers() | st.text("ab: #\n-é", max_size=12)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text("abn", max_size=3), v, max_size=3)
)


@settings(max_examples=200)
@given(value=VALUES)
def test_every_value_is_in_the_text(value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = read_document(tmp_path_factory.getbasetemp() / "value.json", json.dumps({"key": "there", "value": value}))
    assert all(text in found.text for text in list_texts(value))


def list_texts(value: object) -> list[str]:
    """Return the texts in a value, without blanks around them."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in list_texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in list_texts(each)]
    return [value.strip()] if isinstance(value, str) else []
