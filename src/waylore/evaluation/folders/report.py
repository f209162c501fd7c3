"""Write the tables of a measurement in Markdown: scores, comparisons, gate, labelled pages and costs."""

from collections.abc import Iterable, Iterator, Mapping

from waylore.evaluation.folders.ask import TOP_K
from waylore.evaluation.folders.labels import score_pages
from waylore.evaluation.folders.measure import (
    ALL,
    BASELINE,
    Measurement,
    compare_earlier,
    compare_methods,
    count_irrelevant,
    measure_gate,
    reports_relevance,
)
from waylore.evaluation.folders.scoring import ScoreRow, SignTest, make_row
from waylore.evaluation.tables import format_markdown

MULTI = "multi"
MISSING = "–"  # there are no such questions


def format_report(measurement: Measurement) -> str:
    """Return all tables, each under its heading. A table without rows is left out."""
    asked = len(measurement.questions)
    head = f"{asked} questions about {', '.join(measurement.folders)}; {measurement.embedder}, top_k={TOP_K}"
    tables = {
        "Recall of the first five by type and split": _format_scores(measurement),
        "By folder": _format_folders(measurement),
        "Compared question by question": _format_comparisons(measurement),
        "Gate": _format_gates(measurement),
        "Questions without an answer": _format_relevance(measurement),
        "Names and relations of labelled pages": _format_labels(measurement),
        "Indexing": _format_costs(measurement),
    }
    parts = [f"## {title}\n\n{table}" for title, table in tables.items() if table]
    return "\n\n".join([head, *parts, *_list_notes(measurement)])


# -- scores --------------------------------------------------------------------------------------------


def _format_scores(measurement: Measurement) -> str:
    has_multi = MULTI in measurement.types
    head = ["split", "method", *measurement.types, ALL, "95 %", "all@5", *(["of multi"] if has_multi else [])]
    rows = []
    for split in measurement.splits:
        for method in measurement.methods:
            by_type = {type_: _score(measurement, method, split, type_=type_) for type_ in (*measurement.types, ALL)}
            recalls = [_format_recall(by_type[type_]) for type_ in (*measurement.types, ALL)]
            span, all_gold, *rest = _format_rest(by_type[ALL])
            multi = [_format_rest(by_type[MULTI])[1]] if has_multi else []
            rows.append([split, method, *recalls, span, all_gold, *multi, *rest])
    return format_markdown([*head, "hit@1", "MRR"], rows, names=2)


def _format_folders(measurement: Measurement) -> str:
    splits = measurement.splits
    head = ["folder", "method", *(f"R@5 {split}" for split in splits), "95 %", "all@5", "hit@1", "MRR"]
    rows = []
    for folder in measurement.folders:
        for method in measurement.methods:
            scores = [_score(measurement, method, split, folder=folder) for split in splits]
            rows.append([folder, method, *map(_format_recall, scores), *_format_rest(scores[-1])])
    return format_markdown(head, rows, names=2)


def _score(
    measurement: Measurement, method: str, split: str, *, folder: str = ALL, type_: str = ALL
) -> ScoreRow | None:
    scored = measurement.score(method, measurement.select(folder=folder, type_=type_, split=split))
    return make_row(scored.values()) if scored else None


def _format_recall(row: ScoreRow | None) -> str:
    return f"{row.recall.mean:.3f}" if row else MISSING


def _format_rest(row: ScoreRow | None) -> list[str]:
    """Return the interval of the recall, all@5, hit@1 and MRR."""
    if row is None:
        return [MISSING] * 4
    shares = (f"{share:.3f}" for share in (row.all_gold, row.first, row.reciprocal_rank))
    return [f"{row.recall.low:.3f}–{row.recall.high:.3f}", *shares]


# -- comparisons ---------------------------------------------------------------------------------------


def _format_comparisons(measurement: Measurement) -> str:
    rows = []
    for split in measurement.splits:
        tests = compare_methods(measurement, split).items()
        rows += [[split, method, BASELINE, *_format_test(test)] for method, test in tests]
        earlier = compare_earlier(measurement, split).items()
        rows += [[split, method, f"{method} in {name}", *_format_test(test)] for (method, name), test in earlier]
    return (
        format_markdown(["split", "method", "against", "better", "worse", "sign test p"], rows, names=3) if rows else ""
    )


def _format_test(test: SignTest) -> list[str]:
    return [str(test.better), str(test.worse), f"{test.p:.3f}"]


def _format_gates(measurement: Measurement) -> str:
    head = ["split", "method", "open", "closed", "names", "graph would harm", "harmed", "would help", "help lost"]
    rows = []
    for split in measurement.splits:
        for method in measurement.ungated:
            gate = measure_gate(measurement, method, split)
            reasons = (f"{n} {outcome}" for outcome, n in gate.outcomes.items() if outcome != "open")
            decided = [str(gate.outcomes["open"]), ", ".join(reasons) or "0", f"{gate.entities:.1f}"]
            rows.append([split, method, *decided, *map(str, (gate.harms, gate.harmed, gate.helps, gate.lost))])
    return format_markdown(head, rows, names=2) if rows else ""


def _format_relevance(measurement: Measurement) -> str:
    if all(question.has_answer for question in measurement.questions):
        return ""
    if not reports_relevance(measurement):
        return "is_relevant is not reported."
    rows = []
    for split in measurement.splits:
        asked = measurement.select(split=split)
        groups = [[q for q in asked if q.has_answer == has_answer] for has_answer in (False, True)]
        for method, answers in measurement.answers.items():
            counts = [count_irrelevant(group, answers) for group in groups]
            rows.append([split, method, *(f"{n} of {len(group)}" for n, group in zip(counts, groups, strict=True))])
    return format_markdown(["split", "method", "is_relevant is false", "though there is an answer"], rows, names=2)


# -- pages and costs -----------------------------------------------------------------------------------


def _format_labels(measurement: Measurement) -> str:
    return format_pages(score_pages(measurement.pages), (*measurement.splits, ALL, *measurement.folders))


def format_pages(scores: Mapping[str, Mapping[str, float]], keys: Iterable[str]) -> str:
    """Return the table of names and relations of labelled pages, with a row for each split or folder of `keys`."""
    head = "pages,names P,names R,not_names taken,relations,of them mentions,ends P,ends R,full P,full R".split(",")
    rows = []
    for key in (key for key in dict.fromkeys(keys) if key in scores):
        figures = scores[key]
        taken = f"{figures['not_names_taken']} of {figures['not_names']}"
        names = [f"{figures[name]:.3f}" for name in ("names_precision", "names_recall")]
        parts = ("ends_precision", "ends_recall", "full_precision", "full_recall")
        counts = [str(figures["relations_said"]), str(figures["mentions"])]
        rows.append([key, *names, taken, *counts, *(f"{figures[part]:.3f}" for part in parts)])
    return format_markdown(head, rows) if rows else ""


def _format_costs(measurement: Measurement) -> str:
    counted = ("files", "documents", "passages", "entities", "facts", "texts", "embedded")
    head = ["folder", *counted, "skipped", "processor s", "s a file"]
    rows = []
    for name, costs in measurement.costs.items():
        numbers = [f"{getattr(costs, one):,}" for one in counted]
        seconds = [f"{costs.processor_seconds:.1f}", f"{costs.seconds_per_file:.3f}"]
        rows.append([name, *numbers, str(len(costs.skipped)), *seconds])
    return format_markdown(head, rows)


def _list_notes(measurement: Measurement) -> Iterator[str]:
    """Yield a line for each condition that affects the figures."""
    costs = measurement.costs.values()
    if cached := sum(one.texts - one.embedded for one in costs):
        texts = sum(one.texts for one in costs)
        yield f"Vectors of {cached:,} of {texts:,} texts were cached; the processor time is without embedding these."
    if unchanged := sum(one.unchanged for one in costs):
        yield f"{unchanged:,} files were indexed by an earlier run; the processor time is without these."
    for method, answers in measurement.answers.items():
        sizes = sorted({len(answer.hits) for answer in answers.values()})
        if sizes != [TOP_K]:
            yield f"{method} returned {' to '.join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))} hits."
