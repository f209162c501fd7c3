"""The commands on a real file: what each tells people and programs, and what it refuses."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tools.postgres import Server
from typer.testing import CliRunner

from databases import database
from surfaces.commands import POTION, notes, run, told
from waylore import Claim, Filter, Waylore
from waylore.recipes import RECIPES
from waylore.surfaces import wire
from waylore.surfaces.cli.app import app

QUESTION = "Who owns what Login keeps its tokens in?"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with notes, and nothing in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("WAYLORE_STORE", "team.waylore")
    notes(tmp_path)
    return tmp_path


@pytest.fixture
def filled(folder: Path) -> Path:
    with Waylore.open("team.waylore") as memory:
        memory.add_files("notes")
    return folder


def test_files_are_added_once(folder: Path) -> None:
    (folder / "notes" / "scan.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    added = told("add", "notes")
    assert (added["files"], added["documents"], added["refusals"][0]["uri"]) == (4, 3, "notes/scan.pdf")
    assert "4 files: nothing new, 3 unchanged" in run("add", "notes")
    (folder / "notes" / "mara.md").unlink()
    assert told("add", "notes", "--prune")["forgotten"] == 1


def test_several_paths_are_added_up(folder: Path) -> None:
    added = told("add", "notes/login.md", "notes/mara.md")
    assert (added["files"], added["documents"]) == (2, 2)


def test_a_folder_is_added_without_the_store_and_its_settings(folder: Path) -> None:
    run("init", "--embedder", "none")
    (folder / ".env").write_text("WAYLORE_EMBEDDING_KEY=secret\n")
    assert told("add", ".")["files"] == 3
    assert "is the store itself" in run("add", "team.waylore", code=2)


def test_a_text_is_added_with_what_is_known_of_it() -> None:
    id_ = told(
        "add", "--text", "Mara moved to Bergen.", "--title", "Mara", "-l", "staff", "--metadata", "year=2024"
    )
    with Waylore.open("team.waylore") as memory:
        document = memory.get(id_["document"]).document
    assert (document.title, sorted(document.labels)) == ("Mara", ["staff"])
    assert document.metadata == {"year": 2024}


def test_a_text_comes_from_standard_input() -> None:
    run("add", "-", "--uri", "note:1", stdin="Nils lives in Tromsø.")
    assert told("search", "Tromsø")["hits"][0]["document"]["uri"] == "note:1"


@pytest.mark.parametrize(
    "arguments", [(), ("--text", "x", "notes"), ("-", "notes"), ("nowhere",), ("--text", " ")]
)
def test_what_cannot_be_added_is_refused(arguments: tuple[str, ...]) -> None:
    assert run("add", *arguments, code=2).startswith("waylore: ")


@pytest.mark.parametrize("method", RECIPES)
def test_programs_are_told_what_python_is(filled: Path, method: str) -> None:
    with Waylore.open("team.waylore") as memory:
        found = memory.search(QUESTION, method=method, count_use=False)
    asked = told("search", QUESTION, "--method", method)
    assert asked | {"seconds": {}} == wire.Found.of(found).model_dump(mode="json") | {"seconds": {}}


def test_the_specifications_names_of_methods(filled: Path) -> None:
    assert told("search", QUESTION, "-m", "graph")["recipe"] == "chain"
    assert told("search", "a vs b", "-m", "agentic")["chosen"].startswith("hybrid: ")
    assert "there is no method 'best': use auto, chain" in run("search", "x", "-m", "best", code=2)


def test_people_are_shown_cards(filled: Path) -> None:
    shown = run("search", QUESTION)
    assert re.search(r"^ 1 Login › Tokens +notes/login.md \d\.\d{3}$", shown, re.MULTILINE)
    assert "   Tokens are kept by [[Sessions]].\n" in shown
    assert "   via Login —links_to→ Sessions —owner→ Mara\n" in shown
    assert "not searched: meaning: no embedder was given" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


def test_explanations_are_trees(filled: Path) -> None:
    shown = run("search", QUESTION, "--explain")
    assert re.search(r"├── words +[█░]{10} +\d+%  rank 1, score \d", shown)
    assert "└── Sessions —owner→ Mara" in shown


def test_a_context_is_for_a_model_and_within_its_budget(filled: Path) -> None:
    made = told("search", QUESTION, "--context", "--style", "passages", "--tokens", "60")
    assert made["tokens"] <= 60
    assert run("search", QUESTION, "--context").startswith("## Knowledge Graph Context\n")


def test_a_number_of_a_recipe_is_changed(filled: Path) -> None:
    assert told("search", "x", "-m", "neighbourhood", "--recipe", "walk.max_hops=2")["recipe"].endswith(
        "max_hops=2"
    )
    for wrong in ("walk.hops=2", "walk=2", "walk.max_hops=far", "top_k.x=1", "nothing"):
        assert run("search", "x", "--recipe", wrong, code=2).startswith("waylore: ")
    assert "name it, --method" in run("search", "x", "-m", "auto", "--recipe", "top_k=2", code=2)


def test_labels_and_metadata_filter() -> None:
    with Waylore.open("team.waylore") as memory:
        memory.add("The plan for staff.", labels=["staff"], metadata={"year": 2024})
        memory.add("The plan for all.", metadata={"year": "2024"})
        memory.add("The plan of old.", metadata={"year": 1999})
        assert len(memory.search("plan", where=Filter(labels=frozenset({"guest"}))).hits) == 2
    assert len(told("search", "plan", "--label", "guest")["hits"]) == 2
    assert len(told("search", "plan", "--where", "year=2024")["hits"]) == 2
    assert len(told("search", "plan", "--where", "year=2024", "--where", "year=1999")["hits"]) == 3
    assert "'year' is no pair" in run("search", "plan", "--where", "year", code=2)


def test_as_of_a_date() -> None:
    with Waylore.open("team.waylore") as memory:
        until = Claim("Nils", "lives_in", "Bergen", valid_to=datetime(2020, 1, 1, tzinfo=UTC))
        memory.add_facts([until, Claim("Nils", "lives_in", "Tromsø")])
    assert [fact["object"] for fact in told("facts", "Nils", "--as-of", "2024-01-01")] == ["Tromsø"]
    assert len(told("facts", "nils")) == 2
    assert "until 2020-01-01" in run("facts", "Nils")
    assert "is no date: write 2024-06-30" in run("facts", "Nils", "--as-of", "soon", code=2)


def test_why_a_hit_was_found(filled: Path) -> None:
    third = told("ask-why", QUESTION, "3")
    found = told("search", QUESTION)  # which counts as a use, and so changes what comes after it
    assert (third["rank"], third["found"]["hits"]) == (3, [found["hits"][2]])
    assert told("ask-why", QUESTION, found["hits"][2]["passage"]["id"][:12])["rank"] == 3
    shown = run("ask-why", QUESTION, str(len(found["hits"])))
    for part in ("├── score", "├── path", "gate   open", "method chain", "└── time", "words", "link"):
        assert part in shown
    assert "there is no hit 99 among" in run("ask-why", QUESTION, "99", code=3)


def test_what_stands_around_an_entity(filled: Path) -> None:
    assert "├── —links_to→ Sessions\n│   ├── —owner→ Mara" in run("graph", "login", "--hops", "2")
    with Waylore.open("team.waylore") as memory:
        around = [wire.Surroundings.of(each).model_dump(mode="json") for each in memory.graph("login", hops=2)]
    assert told("graph", "login", "--hops", "2") == around
    assert told("graph", "nobody") == []
    assert "nothing is known of 'nobody'" in run("graph", "nobody")


def test_statistics(filled: Path) -> None:
    assert told("stats")["documents"] == 3
    shown = run("stats")
    assert "documents" in shown
    assert "only words are searched" in shown


def test_forgetting_by_address_folder_and_identity(filled: Path) -> None:
    assert len(told("forget", "notes/mara.md", "--verify")["documents"]) == 1
    assert "no document notes/mara.md" in run("forget", "notes/mara.md", code=3)
    assert "no document notes" in run("forget", "notes", code=3)
    assert "verified: nothing of it is left" in run("forget", "notes/", "--verify")
    with Waylore.open("team.waylore") as memory:
        id_ = memory.add("A text without an address.")
    assert told("forget", id_)["documents"] == [id_]
    assert told("stats")["documents"] == 0


def test_a_table_is_forgotten_with_its_rows(folder: Path) -> None:
    (folder / "people.csv").write_text("name,city\nMara,Lisbon\nNils,Bergen\n")
    run("add", "people.csv")
    assert len(told("forget", "people.csv")["documents"]) == 2


def test_an_export_is_imported(filled: Path) -> None:
    assert told("export", "out.jsonl") == {"file": "out.jsonl", "documents": 3}
    assert not list(filled.glob("*.part"))
    imported = told("import", "out.jsonl", "--store", "copy.waylore")
    assert (imported["format"], imported["documents"], imported["written"]) == ("waylore", 3, 3)
    assert told("search", QUESTION, "--store", "copy.waylore")["hits"] == told("search", QUESTION)["hits"]
    assert told("import", "out.jsonl", "--store", "copy.waylore")["written"] == 0
    assert "is there already" in run("export", "out.jsonl", code=2)
    assert "cannot be written" in run("export", "nowhere/out.jsonl", code=2)
    assert "brings its own labels" in run("import", "out.jsonl", "-l", "staff", code=2)


def test_triples_are_imported_with_labels(folder: Path) -> None:
    (folder / "facts.csv").write_text("subject,predicate,object\nlogin,needs,sessions\n,broken,\n")
    imported = told("import", "facts.csv", "-l", "staff")
    assert (imported["format"], imported["written"], imported["refused"]) == ("triples", 1, 1)
    assert told("facts", "login", "--label", "guest") == []
    assert "passed over" in run("import", "facts.csv")
    assert "format cannot be told" in run("import", "notes/login.md", code=2)
    assert "there is nothing to import" in run("import", "nowhere.csv", code=2)
    assert "there is no format 'xml'" in run("import", "facts.csv", "--format", "xml", code=2)


def test_another_model_is_refused_until_the_collection_is_embedded_anew(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no embedder is set" in run("reembed", code=2)
    monkeypatch.setenv("WAYLORE_EMBEDDING_PROVIDER", "hashing")
    assert "`waylore reembed`" in run("search", QUESTION, code=7)
    assert run("search", QUESTION, "-m", "keyword")  # needs no model
    assert told("reembed")["vectors"] > 0
    assert told("reembed")["vectors"] == 0
    assert told("search", QUESTION)["missing"] == []


def test_settings_are_shown_with_their_origin_and_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_STORE", "postgresql://waylore:hunter2@db/waylore")
    monkeypatch.setenv("WAYLORE_EMBEDDING_KEY", "sk-secret")
    known = {one["name"]: one for one in told("config", "-c", "team")}
    assert known["collection"]["source"] == "option"
    assert known["store"]["source"] == "environment"
    port = known["http.port"]
    assert (port["value"], port["source"], port["variable"]) == ("8080", "default", "WAYLORE_HTTP_PORT")
    everything = run("config") + run("config", "--json")
    assert "hunter2" not in everything
    assert "sk-secret" not in everything


def test_a_server_is_a_store_as_well(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = database()
    with Waylore.open("team.waylore") as memory:
        memory.add_files("notes")
        found = memory.search(QUESTION, count_use=False)
    assert told("add", "notes", "--store", url)["documents"] == 3
    assert [hit["passage"]["text"] for hit in told("search", QUESTION, "--store", url)["hits"]] == [
        hit.passage.text for hit in found.hits
    ]
    with_password = url.replace("postgres@", "postgres:hunter2@")
    assert "hunter2" not in run("stats", "--store", with_password)
    assert "verified" in run("forget", "notes/", "--verify", "--store", url)


def test_a_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYLORE_HTTP_PORT", "many")
    assert "http.port" in run("config", code=2)


@pytest.mark.parametrize(
    "command", ["search x", "stats", "graph x", "facts x", "forget x", "export y", "ask-why x"]
)
def test_looking_makes_no_store(folder: Path, command: str) -> None:
    assert "there is no store at team.waylore: `waylore init` makes one" in run(*command.split(), code=3)
    assert not (folder / "team.waylore").exists()


def test_an_empty_collection_is_told() -> None:
    Waylore.open("team.waylore").close()
    done = CliRunner().invoke(app, ["search", "x"])
    assert done.stdout.startswith("nothing found")
    assert "the collection is empty: `waylore add PATH` fills it" in done.stderr


def test_hostile_texts_do_not_reach_the_terminal() -> None:
    with Waylore.open("team.waylore") as memory:
        text = "Evil \x1b[31mtext\x07 with [bold]markup[/bold] about login."
        memory.add(text, title="\x1b]0;owned\x07", uri="a\x1b:b")
        memory.add_facts([("login\x1b[2J", "is\x9b", "[red]odd[/red]")])
    for command in (
        ("search", "login text", "--explain"),
        ("search", "login", "--context"),
        ("ask-why", "login text"),
        ("graph", "login\x1b[2J"),
        ("facts", "login\x1b[2J"),
    ):
        assert not set(run(*command)) & {"\x1b", "\x07", "\x9b"}
    assert "[bold]markup[/bold]" in run("search", "evil text")


def test_evaluation_is_a_command() -> None:
    assert "usage: waylore eval" in run("eval", "--help")
    run("eval", "--data", "sets", "--sets", "none", "--embedder", "hashing", code=1)


# -- init ------------------------------------------------------------------------------------------------


def test_init_writes_what_it_chose_and_then_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WAYLORE_STORE")
    shown = run("init", "--embedder", "hashing", "--store", "mine.waylore", "-c", "team")
    written = (folder / "waylore.toml").read_text()
    assert 'store = "mine.waylore"\ncollection = "team"\n\n[embedding]\nprovider = "hashing"\n' in written
    assert written in shown
    assert shown.endswith("next: waylore add PATH\n")
    assert told("init") == {
        "settings": "waylore.toml",
        "is_new": False,
        "store": "mine.waylore",
        "embedder": "hashing",
    }
    assert (folder / "waylore.toml").read_text() == written
    assert "with another store: edit it" in run("init", "--store", "other.waylore", code=2)
    run("add", "notes")
    assert 'next: waylore search "…"' in run("init")


def test_init_writes_any_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLORE_STORE")
    run("init", "--embedder", "none", "--store", 'a "b" \\ 𝄞.waylore')
    assert told("init")["store"] == 'a "b" \\ 𝄞.waylore'


def test_init_without_an_embedder_says_how_to_get_one() -> None:
    assert "pip install 'waylore[local]'" in run("init", "--embedder", "none")


def test_init_leaves_what_the_environment_says_there(folder: Path) -> None:
    run("init", "--embedder", "none")
    assert "team.waylore" not in (folder / "waylore.toml").read_text()
    assert (folder / "team.waylore").exists()


@pytest.mark.model
def test_init_takes_a_model_from_a_folder(folder: Path) -> None:
    assert told("init", "--model-path", str(POTION))["embedder"] == "model2vec"
    run("add", "notes")
    assert told("search", "who is in charge of the session keeper", "-m", "vector")["missing"] == []


def test_init_that_finds_no_model_leaves_nothing(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "must hold one .onnx" in run("init", "--embedder", "fastembed", "--model-path", "empty", code=8)
    assert not (folder / "waylore.toml").exists()
    assert not (folder / "team.waylore").exists()
