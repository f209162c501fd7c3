"""Test the commands on a real file: output for people and programs, and errors."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tools.postgres.server import Server
from typer.testing import CliRunner

from databases import create_database
from requirements import find_model
from surfaces.commands import notes, run, run_json
from waylore import Filter, NewFact, Waylore
from waylore.fence import RECALLED_NOTE
from waylore.recipes import RECIPES
from waylore.surfaces.cli.app import app

QUESTION = "Who owns what Login keeps its tokens in?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a working folder with notes, and clear the settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("WAYLORE_STORE", "team.waylore")
    notes(tmp_path)
    return tmp_path


@pytest.fixture
def filled(folder: Path) -> Path:
    (folder / "waylore.toml").touch()
    with Waylore.open("team.waylore") as memory:
        memory.add_files("notes")
    return folder


def test_add_skips_unchanged_files(folder: Path) -> None:
    (folder / "waylore.toml").touch()
    (folder / "notes" / "scan.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    added = run_json("add", "notes")
    assert (added["files"], added["documents"], added["skipped"][0]["uri"]) == (4, 3, "notes/scan.pdf")
    assert "4 files: nothing new, 3 unchanged" in run("add", "notes")
    (folder / "notes" / "mara.md").unlink()
    assert run_json("add", "notes", "--prune")["forgotten"] == 1


def test_add_fails_if_no_file_could_be_read(folder: Path) -> None:
    """T87: a folder of which nothing is read is an error of the command, not "nothing new"."""
    (folder / "waylore.toml").touch()
    (folder / "icons").mkdir()
    (folder / "icons" / "start.svg").write_text("<svg/>")
    refused = run("add", "icons", code=1)
    assert "1 file: nothing could be read" in refused
    assert "there is no reader for .svg files" in refused
    (folder / "icons" / "about.md").write_text("# About\n\nIcons of the login page.\n")
    assert "1 document added" in run("add", "icons")
    assert "nothing new, 1 unchanged" in run("add", "icons")


def test_add_sums_up_several_paths(folder: Path) -> None:
    added = run_json("add", "notes/login.md", "notes/mara.md")
    assert (added["files"], added["documents"]) == (2, 2)


def test_add_leaves_out_store_and_settings(folder: Path) -> None:
    run("init", "--embedder", "none")
    (folder / ".env").write_text("WAYLORE_EMBEDDING_API_KEY=secret\n")
    assert run_json("add", ".")["files"] == 3
    assert "is the store itself" in run("add", "team.waylore", code=2)


def test_add_text_with_title_labels_and_metadata() -> None:
    id_ = run_json(
        "add", "--text", "Mara moved to Bergen.", "--title", "Mara", "-l", "staff", "--metadata", "year=2024"
    )
    with Waylore.open("team.waylore") as memory:
        document = memory.get(id_["document"]).document
    assert (document.title, sorted(document.labels)) == ("Mara", ["staff"])
    assert document.metadata == {"year": 2024}


def test_add_reads_standard_input() -> None:
    run("add", "-", "--uri", "note:1", stdin="Nils lives in Tromsø.")
    assert run_json("search", "Tromsø")["hits"][0]["document"]["uri"] == "note:1"


@pytest.mark.parametrize("arguments", [(), ("--text", "x", "notes"), ("-", "notes"), ("nowhere",), ("--text", " ")])
def test_add_refuses_wrong_arguments(arguments: tuple[str, ...]) -> None:
    assert run("add", *arguments, code=2).startswith("waylore: ")


@pytest.mark.parametrize("method", RECIPES)
def test_search_json_equals_the_python_result(filled: Path, method: str) -> None:
    with Waylore.open("team.waylore") as memory:
        found = memory.search(QUESTION, method=method, record_use=False)
    asked = run_json("search", QUESTION, "--method", method, "--explain")
    assert asked | {"seconds": {}} == found.to_dict(explain=True) | {"seconds": {}}


def test_search_json_has_explanations_on_request(filled: Path) -> None:
    with Waylore.open("team.waylore") as memory:
        found = memory.search(QUESTION, record_use=False)
    assert run_json("search", QUESTION) | {"seconds": {}} == found.to_dict() | {"seconds": {}}


def test_search_takes_the_methods_of_the_specification(filled: Path) -> None:
    assert run_json("search", QUESTION, "-m", "graph")["recipe"] == "chain"
    assert run_json("search", "a vs b", "-m", "agentic")["route_reason"].startswith("hybrid: ")
    assert run_json("search", QUESTION, "-m", "Vector")["recipe"] == "vector"
    assert run_json("search", "a vs b", "-m", "AUTO")["recipe"] == "hybrid"
    assert run_json("search", QUESTION, "-m", "graph", "--recipe", "top_k=2")["recipe"].startswith("chain with ")
    assert "unknown method 'best'; use auto, chain" in run("search", "x", "-m", "best", code=2)


def test_search_chooses_by_default_and_names_the_reason(filled: Path) -> None:
    assert run_json("search", "a vs b")["route_reason"] == "hybrid: it compares"
    assert run_json("search", QUESTION)["route_reason"] == "chain: the default for documents"
    assert run_json("search", QUESTION, "-m", "chain")["route_reason"] == ""
    assert "hits · chain: the default for documents ·" in run("search", QUESTION)


def test_recipe_values_of_settings_are_of_chain_by_default(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_SEARCH_RECIPE", "walk.max_hops=2")
    assert run_json("search", QUESTION)["recipe"] == "chain with walk.max_hops=2"


def test_papers_are_found_by_identifier(tmp_path: Path) -> None:
    findings = tmp_path / "academic_research_output.json"
    paper = {"arxiv_id": "2501.03236", "title": "MAGMA Memory", "abstract": "Agents need graphs."}
    findings.write_text(json.dumps({"academic_papers": [paper, {"title": "A paper", "abstract": "On iron."}]}))
    run("import", str(findings))
    found = run_json("search", "-m", "agentic", "paper: 2501.03236")
    assert found["hits"][0]["document"]["title"] == "MAGMA Memory"
    assert found["recipe"] == "keyword"


def test_search_prints_cards(filled: Path) -> None:
    shown = run("search", QUESTION)
    assert re.search(r"^ 1 Login +notes/login.md \d\.\d{3}$", shown, re.MULTILINE)
    assert "issues tokens. ## Tokens Tokens are\n   kept by [[Sessions]].\n" in shown
    assert "   via Login —Tokens are kept by→ Sessions —owner→ Mara\n" in shown
    assert "not searched: vector: no embedder was given" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_search_explain_prints_trees(filled: Path) -> None:
    shown = run("search", QUESTION, "--explain")
    assert re.search(r"├── keyword +[█░]{10} +\d+%  rank 1, BM25 \d+\.\d{4}, best \d", shown)
    assert "└── Sessions —owner→ Mara" in shown


def test_context_without_room_for_a_passage_says_so(filled: Path) -> None:
    done = CliRunner().invoke(app, ("search", QUESTION, "--context", "--max-tokens", "3"))
    assert (done.exit_code, done.stdout.strip()) == (0, "")
    assert "no passage fits into 3 tokens; pass a larger --max-tokens" in done.stderr


def test_search_context_stays_within_its_budget(filled: Path) -> None:
    made = run_json("search", QUESTION, "--context", "--layout", "passages", "--max-tokens", "60")
    assert made["tokens"] <= 60
    shown = run("search", QUESTION, "--context")
    assert shown.startswith(RECALLED_NOTE)
    assert "## Knowledge Graph Context" not in shown
    graph = run("search", QUESTION, "--context", "--layout", "graph")
    assert graph.startswith(RECALLED_NOTE)
    assert "\n\n## Knowledge Graph Context\n" in graph


def test_search_overrides_values_of_the_recipe(filled: Path) -> None:
    assert run_json("search", "x", "-m", "neighbourhood", "--recipe", "walk.max_hops=2")["recipe"].endswith(
        "max_hops=2"
    )
    for wrong in ("walk.hops=2", "walk=2", "walk.max_hops=far", "top_k.x=1", "nothing"):
        assert run("search", "x", "--recipe", wrong, code=2).startswith("waylore: ")
    assert "not for auto" in run("search", "x", "-m", "auto", "--recipe", "top_k=2", code=2)


def test_search_filters_by_labels_and_metadata() -> None:
    with Waylore.open("team.waylore") as memory:
        memory.add("The plan for staff.", labels=["staff"], metadata={"year": 2024})
        memory.add("The plan for all.", metadata={"year": "2024"})
        memory.add("The plan of old.", metadata={"year": 1999})
        assert len(memory.search("plan", where=Filter(labels=frozenset({"guest"}))).hits) == 2
    assert len(run_json("search", "plan", "--label", "guest")["hits"]) == 2
    assert len(run_json("search", "plan", "--where", "year=2024")["hits"]) == 2
    assert len(run_json("search", "plan", "--where", "year=2024", "--where", "year=1999")["hits"]) == 3
    assert "'year' must be written as key=value" in run("search", "plan", "--where", "year", code=2)


def test_facts_as_of_a_date() -> None:
    with Waylore.open("team.waylore") as memory:
        move = datetime(2020, 1, 1, tzinfo=UTC)
        until = NewFact("Nils", "lives_in", "Bergen", valid_to=move)
        memory.add_facts([until, NewFact("Nils", "lives_in", "Tromsø", valid_from=move)])
    assert [fact["object"] for fact in run_json("facts", "Nils", "--as-of", "2024-01-01")] == ["Tromsø"]
    assert len(run_json("facts", "nils")) == 2
    assert "until 2020-01-01" in run("facts", "Nils")
    assert "must be a date such as 2026-01-31" in run("facts", "Nils", "--as-of", "soon", code=2)


def test_explain_shows_why_a_hit_was_found(filled: Path) -> None:
    third = run_json("explain", QUESTION, "3")
    found = run_json("search", QUESTION, "--explain")  # which counts as a use, and so changes what comes after it
    assert (third["rank"], third["result"]["hits"]) == (3, [found["hits"][2]])
    assert run_json("explain", QUESTION, found["hits"][2]["passage"]["id"][:12])["rank"] == 3
    shown = run("explain", QUESTION, str(len(found["hits"])))
    for part in ("├── score", "├── path", "gate   open", "method chain", "└── time", "words", "link"):
        assert part in shown
    assert "no hit 99 among" in run("explain", QUESTION, "99", code=3)


def test_documents_are_listed_and_shown(filled: Path) -> None:
    """T8: addresses are listed, and a document is shown by its address, its id or a passage."""
    with Waylore.open("team.waylore") as memory:
        known = memory.documents()
        passage = memory.get(known[0].id).passages[0]
    assert [document["id"] for document in run_json("list")] == [document.id for document in known]
    assert f"1 document; --after {known[0].id} shows the next ones" in run("list", "--limit", "1")
    assert [document["id"] for document in run_json("list", "--after", known[0].id)] == [d.id for d in known[1:]]
    assert run_json("list", "nowhere/") == []
    for name in (known[0].id, known[0].uri, passage.id):
        [shown] = run_json("show", name)
        assert (shown["document"]["id"], shown["passages"][0]["text"]) == (known[0].id, passage.text)
    assert passage.text.split()[-1] in run("show", known[0].uri)
    assert "no document nothing; `waylore list` shows addresses" in run("show", "nothing", code=3)


def test_unknown_name_suggests_names_that_contain_it(filled: Path) -> None:
    """T6: `facts Mara` says that Mara Lindqvist is known."""
    with Waylore.open("team.waylore") as memory:
        memory.add("Ida Berg leads Platform with Ida Holm. Ida Berg sails.", title="People")
    for command in ("facts", "related"):
        assert "no entity 'Ida'; did you mean Ida Berg (1 passage), Ida Holm (1 passage)?" in run(command, "Ida")
        assert "no entity 'nobody'; `waylore search` finds" in run(command, "nobody")
    assert run_json("facts", "Ida") == []
    assert [entity["name"] for entity in run_json("related", "Ida")["similar"]] == ["Ida Berg", "Ida Holm"]


def test_facts_of_a_name_without_facts_says_so(filled: Path) -> None:
    with Waylore.open("team.waylore") as memory:
        memory.add("We like Kingsport.", title="Boats")
    assert "no facts of 'Kingsport'; `waylore search`" in run("facts", "Kingsport")
    assert "no entity 'nobody'" in run("facts", "nobody")


def test_stats_shows_the_size(filled: Path) -> None:
    assert run_json("stats")["documents"] == 3
    shown = run("stats")
    assert "documents" in shown
    assert "only words are searched" in shown
    assert "growth" not in shown  # all of it was written today
    assert [day["documents"] for day in run_json("stats")["growth"]] == [3]


def test_stats_draws_the_growth_by_day(filled: Path) -> None:
    with Waylore.open("team.waylore", clock=lambda: datetime(2020, 1, 2, tzinfo=UTC)) as memory:
        memory.add("Written long ago.", title="Old")
    growth = run_json("stats")["growth"]
    assert (growth[0], len(growth)) == ({"day": "2020-01-02", "documents": 1, "passages": 1}, 2)
    assert re.search(r"growth +▃·+█ 2020-01-02 to 20\d\d-\d\d-\d\d", run("stats"))


def test_forget_takes_addresses_folders_and_ids(filled: Path) -> None:
    assert len(run_json("forget", "notes/mara.md", "--verify")["documents"]) == 1
    assert "no document notes/mara.md" in run("forget", "notes/mara.md", code=3)
    assert "no document note;" in run("forget", "note", code=3)
    assert "verified: no trace is left" in run("forget", "notes", "--verify")
    with Waylore.open("team.waylore") as memory:
        id_ = memory.add("A text without an address.")
    assert run_json("forget", id_)["documents"] == [id_]
    assert run_json("stats")["documents"] == 0


def test_forget_removes_all_rows_of_a_table(folder: Path) -> None:
    (folder / "people.csv").write_text("name,city\nMara,Lisbon\nNils,Bergen\n")
    run("add", "people.csv")
    assert len(run_json("forget", "people.csv")["documents"]) == 2


def test_import_reads_an_export(filled: Path) -> None:
    assert run_json("export", "out.jsonl") == {"file": "out.jsonl", "documents": 3}
    assert not list(filled.glob("*.part"))
    imported = run_json("import", "out.jsonl", "--store", "copy.waylore")
    assert (imported["format"], imported["documents"], imported["written"]) == ("waylore", 3, 3)
    assert run_json("search", QUESTION, "--store", "copy.waylore")["hits"] == run_json("search", QUESTION)["hits"]
    assert run_json("import", "out.jsonl", "--store", "copy.waylore")["written"] == 0
    assert "exists already" in run("export", "out.jsonl", code=2)
    assert "cannot be written" in run("export", "nowhere/out.jsonl", code=2)
    assert "has its own labels" in run("import", "out.jsonl", "-l", "staff", code=2)


def test_export_writes_to_standard_output(filled: Path) -> None:
    run("export", "out.jsonl")
    assert run("export", "-") == (filled / "out.jsonl").read_text("utf-8")
    assert not (filled / "-").exists()


def test_compact_makes_the_file_smaller(filled: Path) -> None:
    with Waylore.open("team.waylore") as memory:
        forgotten = [memory.add(f"Note {number}. " + "Filler. " * 500) for number in range(100)]
        memory.forget(forgotten)
    sizes = run_json("compact")
    assert sizes["bytes_after"] == (filled / "team.waylore").stat().st_size < 0.8 * sizes["bytes_before"]
    assert run("compact").startswith("compacted: ")
    assert run_json("stats")["documents"] == 3


@pytest.mark.parametrize("command", [("add", "notes"), ("add", "--text", "x"), ("import", "facts.csv")])
def test_empty_labels_are_refused(folder: Path, command: tuple[str, ...]) -> None:
    assert "--label must not be empty" in run(*command, "--label", " ", code=2)
    assert not (folder / "team.waylore").exists()


def test_import_triples_with_labels(folder: Path) -> None:
    (folder / "facts.csv").write_text("subject,predicate,object\nlogin,needs,sessions\n,broken,\n")
    imported = run_json("import", "facts.csv", "-l", "staff")
    assert (imported["format"], imported["written"], imported["skipped_count"]) == ("triples", 1, 1)
    assert run_json("facts", "login", "--label", "guest") == []
    assert "skipped" in run("import", "facts.csv")
    assert "format cannot be detected" in run("import", "notes/login.md", code=2)
    assert "no file or folder nowhere.csv" in run("import", "nowhere.csv", code=3)
    assert "format must be one of auto, waylore" in run("import", "facts.csv", "--format", "xml", code=2)


def test_import_for_a_user(folder: Path) -> None:
    rows = [
        {"memory": "Likes tea", "hash": "1", "user_id": "ann"},
        {"memory": "Likes rum", "hash": "2", "user_id": "ben"},
    ]
    (folder / "memories.json").write_text(json.dumps({"results": rows}))
    imported = run_json("import", "memories.json", "--user", "ann")
    assert (imported["format"], imported["written"], imported["skipped_count"]) == ("mem0", 1, 1)
    assert [hit["passage"]["text"] for hit in run_json("search", "likes", "--user", "ann")["hits"]] == ["Likes tea"]
    run("export", "out.jsonl")
    assert "has its own users" in run("import", "out.jsonl", "--user", "ann", code=2)


def test_search_refuses_another_model_until_reembed(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no embedder is set" in run("reembed", code=2)
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    assert "`waylore reembed`" in run("search", QUESTION, code=7)
    assert run("search", QUESTION, "-m", "keyword")  # needs no model
    assert run_json("reembed")["vectors"] > 0
    assert run_json("reembed")["vectors"] == 0
    assert run_json("search", QUESTION)["missing"] == []


def test_config_shows_origins_and_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STORE", "postgresql://waylore:hunter2@db/waylore")
    monkeypatch.setenv("WAYLORE_EMBEDDING_API_KEY", "sk-secret")
    known = {one["name"]: one for one in run_json("config", "-c", "team")}
    assert known["collection"]["source"] == "option"
    assert known["store"]["source"] == "environment"
    port = known["http.port"]
    assert (port["value"], port["source"], port["variable"]) == ("8080", "default", "WAYLORE_HTTP_PORT")
    everything = run("config") + run("config", "--json")
    assert "hunter2" not in everything
    assert "sk-secret" not in everything


def test_commands_work_on_postgresql(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = create_database()
    with Waylore.open("team.waylore") as memory:
        memory.add_files("notes")
        found = memory.search(QUESTION, record_use=False)
    assert run_json("add", "notes", "--store", url)["documents"] == 3
    assert [hit["passage"]["text"] for hit in run_json("search", QUESTION, "--store", url)["hits"]] == [
        hit.passage.text for hit in found.hits
    ]
    with_password = url.replace("postgres@", "postgres:hunter2@")
    assert "hunter2" not in run("stats", "--store", with_password)
    assert "verified" in run("forget", "notes/", "--verify", "--store", url)


def test_config_lists_all_and_marks_invalid_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [one["name"] for one in run_json("config")]
    monkeypatch.setenv("WAYLORE_HTTP_PORT", "many")
    (folder / "waylore.toml").write_text('stroe = "x"\ncollection = "team"\n[embedding]\nprovider = [1]\n')
    listed = {one["name"]: one for one in json.loads(run("config", "--json", code=2))}
    assert [*listed] == ["stroe", *names]
    assert listed["stroe"]["problem"] == "unknown setting stroe (waylore.toml); did you mean store?"
    assert (listed["http.port"]["value"], listed["http.port"]["source"]) == ("many", "environment")
    assert listed["collection"]["value"] == "team"
    assert [one["name"] for one in listed.values() if one["problem"]] == ["stroe", "embedding.provider", "http.port"]
    shown = run("config", code=2)
    assert re.search(r"^✗ http.port +many +environment$", shown, re.MULTILINE)
    assert "✗ http.port: Input should be a valid integer" in shown


def test_config_lists_all_with_an_unreadable_file(folder: Path) -> None:
    (folder / "waylore.toml").write_text("store = \n")
    first, *others = json.loads(run("config", "--json", code=2))
    assert first["problem"].startswith("waylore.toml is not TOML")
    assert {one["problem"] for one in others} == {""}


def test_config_hides_an_invalid_secret(folder: Path) -> None:
    (folder / "waylore.toml").write_text('[embedding]\napi_key = ["sesame"]\n')
    assert "sesame" not in run("config", code=2)


@pytest.mark.parametrize(
    "command", ["search x", "stats", "list", "show x", "related x", "facts x", "forget x", "export y", "explain x"]
)
def test_reading_commands_create_no_store(folder: Path, command: str) -> None:
    assert "no store at team.waylore; create one with `waylore init`" in run(*command.split(), code=3)
    assert not (folder / "team.waylore").exists()


def test_search_reports_an_empty_collection() -> None:
    Waylore.open("team.waylore").close()
    done = CliRunner().invoke(app, ["search", "x"])
    assert done.stdout.startswith("nothing found")
    assert "the collection is empty; add to it with `waylore add PATH`" in done.stderr


def test_control_characters_do_not_reach_the_terminal() -> None:
    with Waylore.open("team.waylore") as memory:
        text = "Evil \x1b[31mtext\x07 with [bold]markup[/bold] about login."
        memory.add(text, title="\x1b]0;owned\x07", uri="a\x1b:b")
        memory.add_facts([("login\x1b[2J", "is\x9b", "[red]odd[/red]")])
    for command in (
        ("search", "login text", "--explain"),
        ("search", "login", "--context"),
        ("explain", "login text"),
        ("related", "login\x1b[2J"),
        ("facts", "login\x1b[2J"),
    ):
        assert not set(run(*command)) & {"\x1b", "\x07", "\x9b"}
    assert "[bold]markup[/bold]" in run("search", "evil text")


def test_eval_is_a_command() -> None:
    assert "usage: waylore eval" in run("eval", "--help")
    missing = run("eval", "--data", "sets", "--sets", "none", "--embedder", "hashing", code=2)
    assert missing.startswith("waylore: ")
    wrong = run("eval", "notes", "--recipes", "none", code=2)
    assert wrong.startswith("waylore: argument --recipes/--methods: invalid choice: 'none'")
    assert wrong.endswith("; see `waylore eval --help`\n")


def test_eval_measures_a_folder_with_the_embedder_of_the_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"question": "Who owns sessions?", "gold": [{"path": next((folder / "notes").glob("*.md")).name}]}
    (folder / "questions.jsonl").write_text(json.dumps(question))
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    shown = run("eval", "notes", "--questions", "questions.jsonl")
    assert "; hashing" in shown.splitlines()[0]
    assert "auto (default)" in shown
    assert not Path("team.waylore").exists()


# -- init ------------------------------------------------------------------------------------------------


def test_init_writes_settings_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLORE_STORE")
    shown = run("init", "--embedder", "hashing", "--store", "mine.waylore", "-c", "team")
    written = (folder / "waylore.toml").read_text()
    assert 'store = "mine.waylore"\ncollection = "team"\n\n[embedding]\nprovider = "hashing"\n' in written
    assert written in shown
    assert shown.endswith("next: waylore add PATH\n")
    assert run_json("init") == {
        "settings": "waylore.toml",
        "is_new": False,
        "store": "mine.waylore",
        "embedder": "hashing",
        "reembed": 0,
    }
    assert (folder / "waylore.toml").read_text() == written
    assert "with another store; edit it" in run("init", "--store", "other.waylore", code=2)
    run("add", "notes")
    assert 'next: waylore search "…"' in run("init")


def test_init_creates_the_folder_of_the_store(folder: Path) -> None:
    run("init", "--embedder", "none", "--store", "new/team.waylore")
    assert (folder / "new" / "team.waylore").exists()


def test_init_writes_any_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLORE_STORE")
    run("init", "--embedder", "none", "--store", 'a "b" \\ 𝄞.waylore')
    assert run_json("init")["store"] == 'a "b" \\ 𝄞.waylore'


def test_init_without_embedder_names_the_extra() -> None:
    assert "pip install 'waylore[local]'" in run("init", "--embedder", "none")


def test_init_writes_no_value_of_the_environment(folder: Path) -> None:
    run("init", "--embedder", "none")
    assert "team.waylore" not in (folder / "waylore.toml").read_text()
    assert (folder / "team.waylore").exists()


@pytest.mark.model
def test_init_takes_a_model_from_a_folder(folder: Path) -> None:
    assert run_json("init", "--model-path", str(find_model("potion")))["embedder"] == "model2vec"
    run("add", "notes")
    assert run_json("search", "who is in charge of the session keeper", "-m", "vector")["missing"] == []


def test_init_without_model_files_leaves_nothing(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "must contain one .onnx" in run("init", "--embedder", "fastembed", "--model-path", "empty", code=8)
    assert not (folder / "waylore.toml").exists()
    assert not (folder / "team.waylore").exists()


@pytest.mark.parametrize(("guess", "command"), [("delete", "forget"), ("query", "search"), ("ingest", "add")])
def test_commands_of_other_programs_are_answered_with_ours(guess: str, command: str) -> None:
    assert f"use `waylore {command}`" in run(guess, "x", code=2)
