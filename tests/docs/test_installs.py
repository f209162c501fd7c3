"""Every command that installs Waylore names the distribution and extras that pyproject.toml has."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from waylore.surfaces.mcp import clients

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
INSTALL = re.compile(
    r"""(?:\bpip[ ](?:--python[ ]\S+[ ])?install|\bpipx[ ]install|\buv[ ]tool[ ]install|["']?--from["']?),?
    (?:[ ](?:--?[\w-]+(?:=\S+)?))*                              # options, such as --upgrade
    [ ]["']?(?!-)(?P<name>\.(?=[\s"'`\[]|$)|[\w.-]*\w)(?:\[(?P<extras>[^]]*)\])?""",
    re.VERBOSE,
)
PLACEHOLDER = re.compile(r"\$?\{(\w+)\}")
TEXTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "justfile")),
    ROOT / ".ci" / "run",
    *sorted((ROOT / ".github").rglob("*.yml")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for folder in ("deploy", "examples") for path in (ROOT / folder).rglob("*") if path.is_file()),
]
OTHER_PACKAGES = {"pip", "openai-agents", "pydantic-ai-slim"}  # the installer itself, and agents of recipes
Install = tuple[str, str, str]  # where it stands, the distribution, its extras


def find_installs(place: str, text: str) -> list[Install]:
    """Return what the commands of a text install."""
    found = INSTALL.finditer(text)
    return [(place, one["name"], one["extras"] or "") for one in found if one["name"] not in OTHER_PACKAGES]


def find_problems(install: Install) -> list[str]:
    """Return what is wrong with an install command; the checkout itself (`.`) is Waylore too."""
    place, name, extras = install
    unknown = {extra.strip() for extra in extras.split(",") if extras} - EXTRAS
    wrong = [f"{place}: no extra {extra}" for extra in sorted(unknown)]
    return wrong if name in (".", PROJECT["name"]) else [*wrong, f"{place}: installs {name}"]


def read_text(path: Path) -> list[Install]:
    """Return what a file's commands install; build arguments of a Dockerfile have their default."""
    text = path.read_text("utf-8")
    defaults = dict(re.findall(r"^ARG (\w+)=(\S*)$", text, re.MULTILINE))
    filled = PLACEHOLDER.sub(lambda found: defaults.get(found[1], found[0]), text)
    return find_installs(str(path.relative_to(ROOT)), filled)


# -- literals of the source ----------------------------------------------------------------------------


def read_literals(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield each string of a module; a value that is filled in stands in braces."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node, "".join(_show_part(part) for part in node.values)
        elif isinstance(node, ast.List | ast.Tuple):  # a command as the list of its words
            yield node, " ".join(text for part in node.elts for text in _show_word(part))


def _show_part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(getattr(part, "value", part)) + "}"


def _show_word(part: ast.expr) -> list[str]:
    if isinstance(part, ast.JoinedStr):
        return ["".join(map(_show_part, part.values))]
    return [part.value] if isinstance(part, ast.Constant) and isinstance(part.value, str) else []


def read_source() -> list[Install]:
    """Return what the strings of the source install, with the extras that callers pass filled in."""
    paths = sorted((ROOT / "src").rglob("*.py"))
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}
    installs: list[Install] = []
    for place, tree in trees.items():
        for node, text in read_literals(tree):
            for where, name, extras in find_installs(f"{place}:{getattr(node, 'lineno', 0)}", text):
                filled_in = PLACEHOLDER.fullmatch(extras)
                if filled_in is None:
                    installs.append((where, name, extras))
                else:
                    function = [one for one in ast.walk(tree) if _contains(one, node)][-1]
                    passed = read_passed(trees, place, function, filled_in[1])
                    installs += [(at, name, extra) for at, extra in passed]
    return installs


def _contains(function: ast.AST, node: ast.AST) -> bool:
    return isinstance(function, ast.FunctionDef) and node in ast.walk(function)


def read_passed(
    trees: dict[str, ast.Module], place: str, function: ast.AST, parameter: str
) -> Iterator[tuple[str, str]]:
    """Yield what the callers of a function pass for a parameter, and its default, with the places."""
    assert isinstance(function, ast.FunctionDef)
    positional = [one.arg for one in function.args.args]
    defaults = dict(zip(reversed(positional), reversed(function.args.defaults), strict=False))
    if parameter in defaults:
        yield f"{place}:{function.lineno}", ast.literal_eval(defaults[parameter])
    module = place.removeprefix("src/").removesuffix(".py").replace("/", ".")
    callers = {where: tree for where, tree in trees.items() if _imports(tree, module, function.name)}
    for where, tree in callers.items():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == function.name:
                passed = dict(zip(positional, call.args, strict=False))
                passed |= {one.arg: one.value for one in call.keywords if one.arg}
                if parameter in passed:
                    yield f"{where}:{call.lineno}", ast.literal_eval(passed[parameter])


def _imports(tree: ast.Module, module: str, name: str) -> bool:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module]
    return any(alias.name == name for node in nodes for alias in node.names)


# -- tests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_installs_waylore(path: Path) -> None:
    assert [problem for install in read_text(path) for problem in find_problems(install)] == []


def test_the_source_installs_waylore() -> None:
    installs = read_source()
    assert [problem for install in installs for problem in find_problems(install)] == []
    assert len(installs) > 20  # those whose extras callers pass are among them
    assert {"cli", "local", "mcp", "http", "telemetry", "files", "rdf", "tokens"} <= {one[2] for one in installs}


def test_uvx_installs_extras_of_waylore() -> None:
    assert {extra for extra in clients.EXTRAS.values() if extra} <= EXTRAS


def test_extras_name_extras() -> None:
    every = [one for requirements in PROJECT["optional-dependencies"].values() for one in requirements]
    own = [one for one in every if one.startswith(PROJECT["name"])]
    assert own
    assert [problem for one in own for problem in find_problems(*find_installs("extras", f"pip install {one}"))] == []


def test_contributors_install_what_ci_installs() -> None:
    """The tests of all surfaces can then be collected. Only tests that CI leaves out need `ray`."""
    [(_, _, ours)], [(_, _, theirs)] = (read_text(ROOT / name) for name in ("CONTRIBUTING.md", ".ci/run"))
    assert set(ours.split(",")) == set(theirs.split(",")) == EXTRAS - {"ray", "all"}


@pytest.mark.parametrize(
    ("text", "installs"),
    [
        ("pip install 'waylore[cli,local]'", ("waylore", "cli,local")),
        ("`pip install .` and", (".", "")),
        ("pip install -e '.[cli]' --group dev", (".", "cli")),
        ('pip --python /opt/bin/python install ".[http]"', (".", "http")),
        ("pip install --upgrade waylore", ("waylore", "")),
        ("uvx --from waylore[mcp] waylore mcp", ("waylore", "mcp")),
        ('"args": ["--from", "waylore[local,mcp]", "waylore"]', ("waylore", "local,mcp")),
        ("pip install way-lore.", ("way-lore", "")),
    ],
)
def test_commands_are_found(text: str, installs: tuple[str, str]) -> None:
    assert find_installs("here", text) == [("here", *installs)]


def test_wrong_commands_are_found() -> None:
    assert find_problems(("here", "waylore", "cli,fils")) == ["here: no extra fils"]
    assert find_problems(("here", "wayloree", "")) == ["here: installs wayloree"]
