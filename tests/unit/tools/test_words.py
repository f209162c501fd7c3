"""tools/words.py: what is read from sources, and which words become ordinary."""

import gzip
import json
from pathlib import Path

from tools.words import Counts, make_lines, read_texts


def count(language: str, *texts: str) -> Counts:
    """Count texts as two sources have them."""
    counts = Counts()
    for text in texts:
        counts.add(text, language)
    counts.in_sources.update(dict.fromkeys(counts.places, 2))
    return counts


def test_pages_manuals_and_rows_are_read(tmp_path: Path) -> None:
    manual = tmp_path / "docs" / "man" / "tool.1.gz"
    manual.parent.mkdir(parents=True)
    manual.write_bytes(gzip.compress(b".SH NAME\nThe \\fBtool\\fP runs.\n.nf\nCode Block\n.fi\n"))
    (tmp_path / "docs" / "a.html").write_text("<h1>Title</h1><p>Some <code>Code</code> text.</p>")
    rows = tmp_path / "rows.jsonl.gz"
    rows.write_bytes(gzip.compress(json.dumps({"text": "A row."}).encode()))
    assert [text.split() for text in read_texts(tmp_path / "docs")] == [["Some", "text."], ["The", "runs."]]
    assert list(read_texts(rows)) == ["A row."]


def test_words_that_are_mostly_small_are_ordinary() -> None:
    texts = ["We check it with Paris and the House."] * 6 + ["They check the house."] * 5
    lines = dict(line.split("\t")[1:] for line in make_lines("en", {"en": count("en", *texts)}))
    assert lines["0"].split() == ["and", "check", "it", "the", "with"]
    assert lines["2"].split() == ["house"]
    assert "Paris".casefold() not in " ".join(lines.values())


def test_german_nouns_are_ordinary_unless_other_languages_name_them() -> None:
    german = count("de", *["Wir lesen die Datei mit Debian."] * 6)
    english = count("en", *["We use Debian and read a file."] * 6)
    lines = dict(line.split("\t")[1:] for line in make_lines("de", {"de": german, "en": english}))
    assert lines["nouns"].split() == ["datei"]


def test_frequent_runs_are_counted_in_scripts_without_spaces() -> None:
    lines = list(make_lines("zh", {"zh": count("zh", *["可以使用。"] * 8)}))
    assert lines == ["zh\truns\t以使 以使用 使用 可以 可以使 可以使用"]


def test_words_of_one_source_are_not_ordinary(tmp_path: Path) -> None:
    for name, word in (("one", "gitignore"), ("two", "folder")):
        (tmp_path / name).mkdir()
        for number in range(6):
            (tmp_path / name / f"{number}.html").write_text(f"<p>We read the file and the {word}.</p>")
    counts = Counts()
    for name in ("one", "two"):
        counts.add_source(tmp_path / name, "en")
    lines = dict(line.split("\t")[1:] for line in make_lines("en", {"en": counts}))
    assert lines["0"].split() == ["and", "file", "read", "the"]
