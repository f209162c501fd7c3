"""Count the table of ordinary words that ships with the package (`waylore.words`).

    python -m tools.words en=FOLDER en=corpus.jsonl.gz de=FOLDER …

A source is a folder with HTML pages, manual pages, fortunes and dictionaries of dictd, for example a documentation
package of Debian unpacked by `dpkg-deb -x`. It may also be a file with one JSON object with the field `text` in each
line, or a word list with `::` between two languages. A word is ordinary if the texts of its language write it small
inside sentences in at least five places, in two sources, and in more than two fifths of its occurrences. German
capitalises every noun: a noun is ordinary unless the texts of the other languages write it as a name. For Chinese
and Japanese the frequent runs of two to four characters are counted. The tool prints what it read. Only words and
their share of capitals are stored.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from waylore.indexing.blocks import require_library
from waylore.indexing.extractors.markup import split_sentences
from waylore.indexing.extractors.spelling import count_words
from waylore.words import OCCURRENCES

OUT = Path(__file__).parents[1] / "src" / "waylore" / "words.txt.gz"
MIN_PLACES = 5
MIN_SOURCES = 2  # a word of one source alone may be a term of its subject
MIN_SMALL_SHARE = 0.4
MAX_WORDS = {"en": 18_000}
MAX_OTHER_WORDS = 10_000
MAX_NOUNS = 15_000
FREQUENT_WORDS = 1_000
UNSPACED = {"zh": "[\u4e00-\u9fff]", "ja": "[\u30a0-\u30ff\u4e00-\u9fff]"}
MIN_RUN_TEXTS = 8
MAX_RUNS = 5_000
CAPITAL_NOUNS = {"de"}
_PLAIN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_LETTERS = {"ru": re.compile("[\u0400-\u04ff’-]+")}  # of translations, which keep some English words
_UNTRANSLATED = re.compile(r"\bthe\b", re.IGNORECASE)
_DROPPED = "//pre|//code|//tt|//kbd|//samp|//h1|//h2|//h3|//h4|//h5|//h6|//script|//style|//head"
_BLOCKS = "//p|//li[not(.//p)]|//dd[not(.//p)]"
_ENTRY = re.compile(r"^\S.*\n|\[(?:syn|ant):[^\]]*\]", re.MULTILINE)  # head words and lists of synonyms
_ASIDE = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)")
_MANUAL = re.compile(r"\.\d[a-z]*(?:\.gz)?$")
_MACRO_BREAK = re.compile(r"^[.'](?:PP|P|LP|TP|IP|SH|SS|HP|RS|RE|br|sp)\b.*$", re.MULTILINE)
_LITERAL = re.compile(r"^\.(?:nf|EX)\b.*?^\.(?:fi|EE)\b", re.MULTILINE | re.DOTALL)
_MACRO = re.compile(r"^[.'].*$", re.MULTILINE)
_FONT = re.compile(r"\\f[BI](.*?)\\f[RP]|\\f\(..|\\f.", re.DOTALL)
_ESCAPES = {"\\-": "-", "\\&": "", "\\|": "", "\\e": "\\", "\\(bu": "", "\\(aq": "'", "\\(cq": "'", "\\(oq": "'"}


@dataclass
class Counts:
    """Occurrences of the words of a language, and the number of texts that write a word small."""

    texts: int = 0
    words: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    in_sources: Counter[str] = field(default_factory=Counter)

    def add_source(self, path: Path, language: str) -> None:
        """Count the words of a source, and the sources that write a word small."""
        before, known = self.texts, self.places.copy()
        for text in read_texts(path):
            self.add(text, language)
        self.sources[path.name] += self.texts - before
        self.in_sources.update(word for word, count in self.places.items() if count > known[word])

    def add(self, text: str, language: str) -> None:
        """Count the words of one text."""
        self.texts += 1
        if pattern := UNSPACED.get(language):
            self.runs.update(_list_runs(text, pattern))
            return
        sentences = split_sentences(text)
        if language != "en":
            sentences = tuple(sentence for sentence in sentences if not _UNTRANSLATED.search(sentence))
        is_word = _LETTERS.get(language, _PLAIN).fullmatch
        found = count_words("\n".join(sentences))
        counts = Counter({word: count for word, count in found.items() if count > 0 and is_word(word)})
        self.words.update(counts)
        self.places.update(word for word in counts if word.islower())

    def count_capitals(self, word: str) -> int:
        """Return how often a word begins with a capital inside a sentence."""
        return self.words[word.capitalize()] + self.words[word.upper()]


def main() -> None:
    """Count the sources and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="LANGUAGE=PATH")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    counts: dict[str, Counts] = {}
    for source in options.sources:
        language, _, path = source.partition("=")
        counts.setdefault(language, Counts()).add_source(Path(path), language)
    lines = [line for language in sorted(counts) for line in make_lines(language, counts)]
    options.out.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    for language, own in sorted(counts.items()):
        print(f"{language}: {', '.join(f'{name} ({number} texts)' for name, number in own.sources.items())}")
    for line in lines:
        language, kind, words = line.split("\t")
        print(f"{language} {kind}: {len(words.split())} words")
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")


def read_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file with JSON lines, or the pages and dictionary entries of a folder."""
    if path.is_file():
        yield from _read_lines(path)
        return
    for file in sorted(path.rglob("*")):
        if not file.is_file() or file.is_symlink():
            continue
        if file.suffix == ".html":
            yield _read_html(file)
        elif file.suffix == ".dz":
            yield from _ENTRY.split(gzip.decompress(file.read_bytes()).decode("utf-8", "replace"))
        elif "fortunes" in file.parts and file.suffix in {"", ".fortunes"}:
            yield from file.read_text("utf-8", "replace").split("\n%\n")
        elif _MANUAL.search(file.name) and "man" in file.parts:
            yield _read_manual(file)


def make_lines(language: str, counts: dict[str, Counts]) -> Iterator[str]:
    """Yield the lines of a language: its frequent words, its words by capitals, and its nouns or runs."""
    own = counts[language]
    if language in UNSPACED:
        runs = [run for run, texts in own.runs.most_common(MAX_RUNS) if texts >= MIN_RUN_TEXTS]
        yield f"{language}\truns\t{' '.join(sorted(runs))}"
        return
    small = Counter({word: count for word, count in own.words.items() if word.islower()})
    frequent = [word for word, _ in small.most_common(FREQUENT_WORDS)]
    yield f"{language}\tfrequent\t{' '.join(frequent)}"
    by_capitals: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for word in _list_ordinary(own, small)[: MAX_WORDS.get(language, MAX_OTHER_WORDS)]:
        share = own.count_capitals(word) / (own.count_capitals(word) + small[word])
        by_capitals[round(OCCURRENCES * share)].append(word)
    for capitals, words in by_capitals.items():
        yield f"{language}\t{capitals}\t{' '.join(sorted(words))}"
    if language in CAPITAL_NOUNS:
        others = [other for code, other in counts.items() if code != language and code not in UNSPACED]
        nouns = _list_nouns(own, others)[:MAX_NOUNS]
        yield f"{language}\tnouns\t{' '.join(sorted(nouns))}"


def _list_ordinary(own: Counts, small: Counter[str]) -> list[str]:
    """Return the words that are mostly written small, the most frequent first."""
    return [
        word
        for word, count in sorted(small.items(), key=lambda item: (-item[1], item[0]))
        if own.places[word] >= MIN_PLACES
        and own.in_sources[word] >= MIN_SOURCES
        and count > MIN_SMALL_SHARE * (count + own.count_capitals(word))
    ]


def _list_nouns(own: Counts, others: Iterable[Counts]) -> list[str]:
    """Return capitalised words that other languages do not write as names, the most frequent first."""
    other_capitals: Counter[str] = Counter()
    other_small: Counter[str] = Counter()
    for other in others:
        for word, count in other.words.items():
            (other_small if word.islower() else other_capitals)[word.lower()] += count
    found = Counter({word.lower(): count for word, count in own.words.items() if word.istitle()})
    return [
        word
        for word, count in found.most_common()
        if count >= MIN_PLACES and (other_capitals[word] <= 2 * other_small[word] or count > 2 * other_capitals[word])
    ]


def _list_runs(text: str, pattern: str) -> set[str]:
    """Return the runs of two to four characters of a text in a script without spaces."""
    found: set[str] = set()
    for run in re.findall(f"{pattern}{{2,}}", text):
        found.update(run[start : start + size] for size in (2, 3, 4) for start in range(len(run) - size + 1))
    return found


def _read_lines(path: Path) -> Iterator[str]:
    """Yield the texts of JSON lines, or the first language of each line of a word list (`Haus {n} :: house`)."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            yield from (json.loads(row)["text"] for row in rows)
        return
    for line in path.read_text("utf-8").splitlines():
        yield f"– und {_ASIDE.sub('', line.partition('::')[0]).replace(';', ',').replace('|', ',')}"


def _read_html(path: Path) -> str:
    html = require_library("lxml.html")
    tree = html.fromstring(path.read_bytes() or b"<p/>", parser=html.HTMLParser(encoding="utf-8"))
    for element in tree.xpath(_DROPPED):
        element.drop_tree()
    return "\n\n".join(" ".join(block.text_content().split()) for block in tree.xpath(_BLOCKS))


def _read_manual(path: Path) -> str:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = _MACRO.sub("", _MACRO_BREAK.sub("\n", _LITERAL.sub("\n", content.decode("utf-8", "replace"))))
    text = _FONT.sub(" ", text)
    for escape, plain in _ESCAPES.items():
        text = text.replace(escape, plain)
    return text


if __name__ == "__main__":
    main()
