"""Score the stored names and relations of labelled pages.

A labelled page lists names, strings that are no names (`not_names`) and relations. `aliases` are other spellings of
its names, `either` strings that are neither right nor wrong, and `also` relations that are true but not required. A
relation is right by its ends if both match in either direction, and in full if the predicates share a content word
besides.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waylore.errors import ConfigError
from waylore.evaluation.folders.scoring import normalise_path, split_words

PAGES = "pages"
MENTIONS = "mentions"
PREFIX = 5  # letters of a predicate's word that are compared
_POSSESSIVE = re.compile(r"['’]s\b")
_ARTICLE = re.compile(r"^(the|a|an) ")
_SMALL_WORDS = frozenset(
    "a an the of to in on at by for from with and or is are was were be been has have had it its this that as into can "
    "may must will not".split()
)
Triple = tuple[str, str, str]  # subject, predicate, object


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """A page with its labels. `aliases` maps each other spelling to its name."""

    folder: str
    path: str
    split: str
    names: frozenset[str]
    not_names: frozenset[str]
    either: frozenset[str]
    aliases: Mapping[str, str]
    relations: tuple[Triple, ...]
    also: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class StoredPage:
    """The stored names and relations of a page."""

    names: tuple[str, ...] = ()
    relations: tuple[Triple, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as it is compared: its two ends, and the content words of its predicate."""

    ends: frozenset[str]
    words: frozenset[str]

    def matches(self, other: "Relation") -> bool:
        """Return whether both ends are the same and the predicates share a content word."""
        return self.ends == other.ends and bool(self.words & other.words)


def read_pages(directory: Path, folder: str) -> list[LabelledPage]:
    """Read the labelled pages of a folder, if there are any."""
    pages = [_read_page(file) for file in sorted(directory.glob(f"{PAGES}/*.json"))]
    return [page for page in pages if page.folder == folder]


def _read_page(file: Path) -> LabelledPage:
    try:
        row = json.loads(file.read_text("utf-8"))
        return LabelledPage(
            folder=row["folder"],
            path=normalise_path(row["path"]),
            split=row["split"],
            names=_normalise_all(row["names"]),
            not_names=_normalise_all(row["not_names"]),
            either=_normalise_all(row.get("either")),
            aliases={
                normalise_name(a): normalise_name(n) for n, of_it in (row.get("aliases") or {}).items() for a in of_it
            },
            relations=_read_triples(row["relations"]),
            also=_read_triples(row.get("also")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} is no labelled page ({error!r}); see docs/how-to/evaluate.md") from error


def _normalise_all(names: Iterable[str] | None) -> frozenset[str]:
    return frozenset(map(normalise_name, names or ()))


def _read_triples(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Triple, ...]:
    return tuple((row["subject"], row["predicate"], row["object"]) for row in rows or ())


def normalise_name(name: str) -> str:
    """Return a name as it is compared: without case, leading article, possessives and punctuation."""
    bare = _POSSESSIVE.sub("", str(name).casefold()).replace("_", " ")
    return _ARTICLE.sub("", " ".join(split_words(bare)))


def score_pages(pages: Iterable[tuple[LabelledPage, StoredPage]]) -> dict[str, dict[str, float]]:
    """Return counts, precision and recall of all pages, and by split and folder."""
    sums: dict[str, Counter[str]] = {}
    for page, stored in pages:
        counts = _count_names(page, stored.names) | _count_relations(page, stored.relations)
        for key in ("all", page.split, page.folder):
            sums.setdefault(key, Counter()).update(counts)
    return {key: {**counts, **_compute_shares(counts)} for key, counts in sums.items()}


def list_misses(page: LabelledPage, stored: StoredPage) -> dict[str, list[str]]:
    """Return the missing and the wrong items of a page: names as they are compared, relations as triples."""
    found = _find_names(page, stored.names)
    gold, true, said = (
        [(triple, _make_relation(triple, page.aliases)) for triple in triples]
        for triples in (page.relations, (*page.relations, *page.also), stored.relations)
    )
    wrong = [triple for triple, one in said if not any(one.matches(other) for _, other in true)]
    missed = [triple for triple, one in gold if not any(one.matches(other) for _, other in said)]
    return {
        "missed name": sorted(page.names - found),
        "wrong name": sorted(found - page.names),
        "missed relation": [" -> ".join(triple) for triple in missed],
        "wrong relation": [" -> ".join(triple) for triple in wrong],
    }


def _find_names(page: LabelledPage, stored: Iterable[str]) -> set[str]:
    """Return the stored names as they are compared, without names that are neither right nor wrong."""
    spellings = {alias: name for alias, name in page.aliases.items() if alias not in page.names}
    found = {spellings.get(name, name) for name in map(normalise_name, stored)} - {""}
    return found - (page.either - page.names)


def _count_names(page: LabelledPage, stored: Iterable[str]) -> dict[str, int]:
    found = _find_names(page, stored)
    wrong = page.not_names - page.names
    return {
        "names": len(page.names),
        "names_said": len(found),
        "names_right": len(page.names & found),
        "not_names": len(wrong),
        "not_names_taken": len(wrong & found),
    }


def _count_relations(page: LabelledPage, stored: Sequence[Triple]) -> dict[str, int]:
    gold = [_make_relation(triple, page.aliases) for triple in page.relations]
    true = [*gold, *(_make_relation(triple, page.aliases) for triple in page.also)]
    said = [_make_relation(triple, page.aliases) for triple in stored]
    return {
        "relations": len(gold),
        "relations_said": len(said),
        "mentions": sum(predicate == MENTIONS for _, predicate, _ in stored),
        "ends_right": sum(any(one.ends == g.ends for g in true) for one in said),
        "ends_found": sum(any(one.ends == g.ends for one in said) for g in gold),
        "full_right": sum(any(one.matches(g) for g in true) for one in said),
        "full_found": sum(any(one.matches(g) for one in said) for g in gold),
    }


def _make_relation(triple: Triple, aliases: Mapping[str, str]) -> Relation:
    subject, predicate, object_ = triple
    ends = (normalise_name(end) for end in (subject, object_))
    words = (word for word in split_words(predicate.replace("_", " ")) if word not in _SMALL_WORDS)
    return Relation(frozenset(aliases.get(end, end) for end in ends), frozenset(word[:PREFIX] for word in words))


def _compute_shares(counts: Mapping[str, int]) -> dict[str, float]:
    shares = {
        "names_precision": ("names_right", "names_said"),
        "names_recall": ("names_right", "names"),
        "ends_precision": ("ends_right", "relations_said"),
        "ends_recall": ("ends_found", "relations"),
        "full_precision": ("full_right", "relations_said"),
        "full_recall": ("full_found", "relations"),
    }
    return {name: counts[part] / counts[whole] if counts[whole] else 0.0 for name, (part, whole) in shares.items()}
