"""A measurement selects questions, judges the gate, and compares methods and runs."""

from waylore.evaluation.folders.ask import FolderAnswer
from waylore.evaluation.folders.measure import (
    GateFigures,
    Measurement,
    compare_earlier,
    count_irrelevant,
    list_rows,
    measure_gate,
    reports_relevance,
)
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.evaluation.folders.report import format_report
from waylore.evaluation.folders.scoring import QuestionScores, RankedHit
from waylore.types.search import GateOutcome

GOLD = ((GoldPassage("a.md", "gold"),),)
FOUND, LOST = (RankedHit("a.md", "gold"),), (RankedHit("b.md", "gold"),)


def make_question(id_: str, split: str = "dev", *, folder: str = "docs", has_answer: bool = True) -> FolderQuestion:
    return FolderQuestion(id_, "?", GOLD if has_answer else (), "lookup" if has_answer else "none", split, folder)


def make_answer(id_: str, is_found: bool, gate: GateOutcome = "open") -> FolderAnswer:
    return FolderAnswer(id_, FOUND if is_found else LOST, gate, entities=("Mara", "Olsen"))


QUESTIONS = [
    make_question("harmed"),
    make_question("saved"),
    make_question("helped"),
    make_question("missed"),
    make_question("test", "test", folder="wiki"),
    make_question("unanswerable", has_answer=False),
]
IDS = [question.id for question in QUESTIONS]
FOUND_BY_HYBRID = {"harmed", "saved", "test"}
FOUND_BY_CHAIN = {"helped", "saved", "test"}  # the gate is closed for `saved` and `missed`
FOUND_BY_GRAPH = {"helped", "missed", "test"}
CLOSED: dict[str, GateOutcome] = {"saved": "unsure", "missed": "unsure", "unanswerable": "unnamed"}


def make_measurement() -> Measurement:
    return Measurement(
        "words",
        QUESTIONS,
        {
            "hybrid": {id_: make_answer(id_, id_ in FOUND_BY_HYBRID, "unused") for id_ in IDS},
            "chain": {id_: make_answer(id_, id_ in FOUND_BY_CHAIN, CLOSED.get(id_, "open")) for id_ in IDS},
        },
        {"chain": {id_: make_answer(id_, id_ in FOUND_BY_GRAPH) for id_ in IDS}},
    )


def test_gate_counts_decisions_and_mistakes() -> None:
    figures = measure_gate(make_measurement(), "chain", "dev")
    assert figures.outcomes == {"open": 2, "unnamed": 1, "unsure": 2}
    assert figures == GateFigures(figures.outcomes, 2.0, harms=2, harmed=1, helps=2, lost=1)


def test_rows_select_folder_type_and_split() -> None:
    rows = {(folder, type_, split): row for folder, type_, split, row in list_rows(make_measurement(), "chain")}
    assert rows["all", "all", "all"].questions == 5
    assert rows["wiki", "lookup", "test"].recall.mean == 1.0
    assert rows["docs", "all", "dev"].recall.mean == 0.5
    assert ("wiki", "all", "dev") not in rows


def test_earlier_run_is_compared_by_method() -> None:
    measurement = make_measurement()
    measurement.earlier = {"base": {"chain": {"harmed": QuestionScores(1.0, 1.0, 1.0, 1.0)}, "guided": {}}}
    [(key, test)] = compare_earlier(measurement, "all").items()
    assert key == ("chain", "base")
    assert (test.better, test.worse) == (0, 1)


def test_relevance_is_reported_if_answers_have_it() -> None:
    measurement = make_measurement()
    assert not reports_relevance(measurement)
    assert "is_relevant is not reported." in format_report(measurement).splitlines()
    measurement.answers["chain"] = {id_: FolderAnswer(id_, (), is_relevant=id_ != "unanswerable") for id_ in IDS}
    assert reports_relevance(measurement)
    assert count_irrelevant(QUESTIONS, measurement.answers["chain"]) == 1
    cells = [[cell.strip() for cell in line.split("|")] for line in format_report(measurement).splitlines()]
    assert ["", "all", "chain", "1 of 1", "0 of 5", ""] in cells


def test_report_has_a_line_for_each_method_and_split() -> None:
    lines = format_report(make_measurement()).splitlines()
    scores = [line.split("|") for line in lines if line.startswith(("| dev", "| test", "| all"))]
    recall = {(cells[1].strip(), cells[2].strip()): cells[3].strip() for cells in reversed(scores)}
    assert recall["dev", "hybrid"] == "0.500"
    assert recall["test", "chain"] == "1.000"
    assert recall["all", "hybrid"] == "0.600"
    assert any("2 unsure" in line and "1 unnamed" in line for line in lines)
