"""The figures of small source trees: each limit is kept by one and broken by another."""

import json
import shutil
from pathlib import Path

import pytest
from tools.figures.__main__ import main
from tools.figures.pages import measure_pages, read_prose
from tools.figures.report import find_broken_limits
from tools.figures.source import read_tree
from tools.figures.survey import Survey, compute_figures, find_cycles, survey_tree
from tools.figures.words import has_verb, is_named_by_participle

DOCUMENTED = '"""Return nothing."""'


def make_tree(folder: Path, files: dict[str, str]) -> Path:
    root = folder / "pkg"
    for place, text in files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def check(folder: Path, files: dict[str, str], twins: str = "") -> list[str]:
    return find_broken_limits(survey_tree(make_tree(folder, files), twins=twins))


def function(name: str, docstring: str = DOCUMENTED) -> str:
    return f"def {name}() -> None:\n    {docstring}\n"


# -- limits --------------------------------------------------------------------------------------------


def test_a_folder_has_at_most_sixteen_modules(tmp_path: Path) -> None:
    files = {"inner/__init__.py": "", **{f"inner/m{number}.py": "" for number in range(16)}}
    assert check(tmp_path, files) == []
    files["inner/one.py"] = ""
    assert check(tmp_path, files) == ["inner has 17 modules, at most 16"]


def test_modules_of_a_folder_share_no_prefix(tmp_path: Path) -> None:
    files = {"a/http_keys.py": "", "b/http_jobs.py": "", "a/http.py": "", "a/https_jobs.py": ""}
    assert check(tmp_path, files) == []
    files["a/http_jobs.py"] = ""
    assert check(tmp_path, files) == ["modules share a prefix in a: http_ (http_jobs.py, http_keys.py)"]


def test_docstrings_are_imperative(tmp_path: Path) -> None:
    property_ = '@property\ndef f(self) -> int:\n    """Returns one."""\n    return 1\n'
    assert check(tmp_path, {"a.py": function("read"), "b.py": property_}) == []
    broken = check(tmp_path, {"a.py": function("read", '"""Returns nothing."""  # noqa: D401')})
    assert "d401 finds 1 docstrings, at most 0; see --list d401" in broken


def test_without_ruff_the_check_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert check(tmp_path, {"a.py": function("read")}) == ["D401 was not counted: install ruff"]


def test_two_percent_of_functions_may_be_named_by_a_participle(tmp_path: Path) -> None:
    verbs = "".join(function(f"read_{number}") for number in range(49))
    assert check(tmp_path, {"a.py": verbs + function("embedded")}) == []
    broken = check(tmp_path, {"a.py": verbs + function("embedded") + function("_asking")})
    assert broken == ["participle_percent is 3.9, at most 2; see --list participles"]


def test_five_percent_of_docstrings_may_lack_a_verb(tmp_path: Path) -> None:
    verbs = "".join(function(f"read_{number}") for number in range(19))
    nouns = [function(name, '"""Passages by cosine."""') for name in ("rank", "sort")]
    assert check(tmp_path, {"a.py": verbs + nouns[0]}) == []
    broken = check(tmp_path, {"a.py": verbs + "".join(nouns)})
    assert broken == ["without_verb_percent is 9.5, at most 5; see --list verbless"]


def test_a_class_name_is_defined_once(tmp_path: Path) -> None:
    names = ("Hit", "WayloreRetriever", "_Private")
    files = {
        "types/search.py": "class Hit: ...\n",
        "surfaces/wire.py": "class Hit: ...\n",
        "integrations/one.py": "".join(f"class {name}: ...\n" for name in names[1:]),
        "integrations/two.py": "".join(f"class {name}: ...\n" for name in names[1:]),
    }
    assert check(tmp_path, files, twins="surfaces.wire") == []
    assert check(tmp_path, files) == ["class Hit is defined in pkg.surfaces.wire, pkg.types.search"]
    files["engine.py"] = "def make() -> None:\n    class Hit: ...\n"
    [line] = check(tmp_path, files, twins="surfaces.wire")
    assert line == "class Hit is defined in pkg.engine, pkg.surfaces.wire, pkg.types.search"


def test_wire_models_may_repeat_any_class(tmp_path: Path) -> None:
    files = {"config.py": "class Context: ...\n", "surfaces/wire.py": "class Context: ...\n"}
    assert check(tmp_path, files, twins="surfaces.wire") == []
    files["engine.py"] = "class Context: ...\n"
    assert len(check(tmp_path, files, twins="surfaces.wire")) == 1


def test_modules_import_each_other_in_no_circle(tmp_path: Path) -> None:
    files = {"__init__.py": "", "a.py": "from pkg import b\n", "b.py": "import pkg.c\n", "c.py": ""}
    assert check(tmp_path, files) == []
    files["c.py"] = "from . import a\n"
    assert check(tmp_path, files) == [
        "import cycle at load: pkg.a pkg.b pkg.c",
        "import cycle: pkg.a pkg.b pkg.c",
    ]


@pytest.mark.parametrize(
    "late",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.a import A\n",
        'def load() -> None:\n    """Load it."""\n    from .a import A\n',
    ],
)
def test_late_imports_count_too(tmp_path: Path, late: str) -> None:
    files = {
        "a.py": "from pkg.inner.b import B\n",
        "inner/b.py": late.replace(".a", "..a").replace("pkg..", "pkg."),
    }
    assert check(tmp_path, files) == ["import cycle: pkg.a pkg.inner.b"]


def test_the_other_branch_of_type_checking_runs_at_load(tmp_path: Path) -> None:
    either = "if TYPE_CHECKING:\n    import pkg.b\nelse:\n    import pkg.c\n"
    root = make_tree(tmp_path, {"a.py": either, "b.py": "import pkg.a\n", "c.py": "import pkg.a\n"})
    survey = Survey(read_tree(root))
    assert survey.cycles_at_load == [["pkg.a", "pkg.c"]]
    assert survey.cycles == [["pkg.a", "pkg.b", "pkg.c"]]


def test_two_circles_are_two() -> None:
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}, "f": {"a"}}
    assert find_cycles(graph) == [["c", "d", "e"], ["a", "b"]]


# -- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["embedded", "_found_names", "asking", "told", "opened_store"])
def test_participles(name: str) -> None:
    assert is_named_by_participle(name)


@pytest.mark.parametrize("name", ["embed", "is_opened", "feed", "string", "test_told", "fastembed", "settings_of"])
def test_no_participles(name: str) -> None:
    assert not is_named_by_participle(name)


def test_verbs() -> None:
    assert has_verb("Return the hits.")
    assert has_verb("Re-embed every passage.")
    assert not has_verb("Passages by cosine.")
    assert not has_verb("")


# -- figures -------------------------------------------------------------------------------------------


def test_figures_of_a_small_tree(tmp_path: Path) -> None:
    text = '''"""What is there, told anew."""

from typing import overload


@overload
def read() -> int: ...


def read(a: int = 1, *b, **_: str) -> int:
    """Read it.

    Twice.
    """
    return a  # a sentence
'''
    values = compute_figures(survey_tree(make_tree(tmp_path, {"a.py": text, "b.py": "x = 1  # noqa: A001\n"})))
    assert (values["modules"], values["lines"], values["functions"]) == (2, 16, 1)
    assert (values["longest_file"], values["longest_function"]) == (15, 2)
    assert (values["typed_percent"], values["documented_modules_percent"]) == (0, 50)
    assert values["comments_per_100"] == pytest.approx(100 / 16)
    assert values["riddles_per_1000"] == pytest.approx(3000 / 10)  # five, three and two words
    assert values["test_ratio"] is None


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    root = make_tree(tmp_path, {"a.py": "def (:\n"})
    with pytest.raises(SystemExit, match=r"a\.py:1: cannot be parsed"):
        survey_tree(root)


def test_an_empty_tree_has_figures(tmp_path: Path) -> None:
    assert check(tmp_path, {"__init__.py": ""}) == []


def test_code_and_comments_of_a_page_are_no_prose(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("One.\n\n```python\nwho is told\n```\n<!-- who\nis told -->\nIt is\ntold anew.\n", "utf-8")
    assert read_prose(page).split() == ["One.", "It", "is", "told", "anew."]
    [readme, architecture, docs, help_] = measure_pages(tmp_path)
    assert (readme.words, readme.riddles) == (
        5,
        ["README.md:8: [is told] It is", "README.md:9: [anew] told anew."],
    )
    assert readme.per_1000 == 400
    assert [one.words for one in (architecture, docs, help_)] == [0, 0, 0]


def test_the_help_is_measured_apart_from_the_docs(tmp_path: Path) -> None:
    for place, text in {"docs/a/b.md": "One two.", "docs/reference/cli.md": "One."}.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text, "utf-8")
    assert [one.words for one in measure_pages(tmp_path)] == [0, 0, 2, 1]


# -- command line --------------------------------------------------------------------------------------


def test_the_table_names_figures_and_goals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, {"a.py": function("told"), "b.py": ""})
    tests = make_tree(tmp_path / "tests", {"test_a.py": "\n" * 4})
    assert main([str(root), "--tests", str(tests), "--docs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["figure", "goal"]
    table = {line[:45].strip(): line[45:].split() for line in lines[1:]}
    assert table["functions named by a participle, %"] == ["100", "≤", "2"]
    assert table["test lines / code lines"][0] == "2"
    assert table["README.md: words"] == ["0"]


def test_the_check_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, {"a.py": function("told")})
    assert main([str(root), "--docs", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err == "participle_percent is 100.0, at most 2; see --list participles\n"
    make_tree(tmp_path, {"a.py": function("report")})
    assert main([str(root), "--docs", str(tmp_path), "--check"]) == 0
    assert capsys.readouterr().err == ""


def test_lists_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_tree(tmp_path, {"a.py": function("told")})
    (tmp_path / "README.md").write_text("Nobody knows.\n", "utf-8")
    options = [str(root), "--docs", str(tmp_path)]
    assert main([*options, "--list", "participles"]) == 0
    assert main([*options, "--list", "pages"]) == 0
    assert capsys.readouterr().out == "pkg.a.told\nREADME.md:1: [Nobody] Nobody knows.\n"
    assert main([*options, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["source"]["participle_percent"] == 100
    assert printed["prose"]["README.md"] == {"words": 2, "riddles_per_1000": 500}
