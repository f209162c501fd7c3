"""Secrets are left out of what readers return; blocks and marks stay where their text is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.indexing.secrets.samples import PASSWORD, SECRETS
from waylore.indexing.blocks import Reading
from waylore.indexing.files.formats import read
from waylore.indexing.readers.plain import find_paragraphs
from waylore.indexing.secrets.leave_out import Offsets
from waylore.indexing.secrets.readings import clean_reading
from waylore.indexing.secrets.sieve import make_sieve

TOKEN = SECRETS[2][2]
HTML = f"""<html><head><title>Notes</title></head><body><h1>Head <private>zwq</private></h1>
<p>Some <private>hidden vxk</private> words and <a href="https://bob:{PASSWORD}@host/x">a link</a>.</p>
<private><p>whole zwq paragraph</p><p>second vxk one</p></private>
<main><p>Main words {TOKEN}.</p></main></body></html>"""
MARKDOWN = f"""---
owner: {TOKEN}
---
# Head <private>zwq</private>

Some <private>hidden vxk</private> words and [a link](https://bob:{PASSWORD}@host/x), `{TOKEN}`.

<private>
whole zwq paragraph

second vxk one
</private>

## The key {TOKEN}

| name | value |
|---|---|
| <private>zwq</private> | x |
| key | {TOKEN} |
"""
FILES = {
    "a.html": HTML,
    "a.md": MARKDOWN,
    "a.json": f'{{"db": {{"password": "{PASSWORD}", "note": "<private>zwq</private>"}}, "t": "{TOKEN}"}}',
    "a.yaml": f"db:\n  user: bob\n  password: {PASSWORD}\n  tokens: [{TOKEN}]\n",
    "a.csv": f"name,password,note\nbob,{PASSWORD},{TOKEN} <private>vxk</private>\n",
    "a.py": f'"""Module."""\n\nPASSWORD = "{PASSWORD}"\n\n\ndef connect():\n    return "{TOKEN}"\n',
    "a.txt": f"First {TOKEN} words.\n\n<private>zwq\n\nvxk</private>\n\npassword = '{PASSWORD}'\n",
}


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_a_reading_has_a_secret(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    for item in read(tmp_path / name):
        assert isinstance(item, Reading)
        sieve = make_sieve(scrub=True)
        reading, _ = clean_reading(item, sieve)
        assert sieve.left_out
        assert not [secret for secret in (TOKEN, PASSWORD, "zwq", "vxk") if secret in repr(reading)]
        ends = [0, *(block.end for block in reading.blocks)]
        assert ends == sorted(ends)
        assert ends[-1] <= len(reading.text)
        assert all(block.start < block.end for block in reading.blocks)


def test_marks_stay_at_their_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    [item] = read(tmp_path / "a.md")
    assert isinstance(item, Reading)
    reading, clean = clean_reading(item, make_sieve(scrub=True))
    block = next(block for block in reading.blocks if "Some" in reading.text[block.start : block.end])
    assert reading.strip_markup(block)[0].strip() == "Some  words and a link, [left out: github token]."
    assert [reading.text[mark.start : mark.end] for mark in block.marks if mark.kind == "link"] == ["a link"]
    assert [mark.target for mark in block.marks if mark.kind == "link"] == ["https://bob:[left out: password]@host/x"]
    assert reading.title == "Head"
    assert clean.counts == {"github token": 4, "password": 1, "private": 4}


def test_without_scrubbing_a_reading_stays(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    [item] = read(tmp_path / "a.md")
    assert isinstance(item, Reading)
    assert clean_reading(item, make_sieve(scrub=False))[0] == item


paragraphs = st.lists(st.text("abc ", min_size=1, max_size=9) | st.sampled_from([s[2] for s in SECRETS]), min_size=1)


@given(paragraphs)
def test_blocks_keep_their_words(parts: list[str]) -> None:
    text = "\n\n".join(parts)
    item = Reading("a", "", text, find_paragraphs(text, max_blocks=len(text)))
    reading, clean = clean_reading(item, make_sieve(scrub=True))
    restore = Offsets(clean.secrets).restore
    for block in reading.blocks:
        original = text[restore(block.start) : restore(block.end, is_end=True)]
        shown = reading.text[block.start : block.end]
        assert shown == original or "[left out: " in shown
