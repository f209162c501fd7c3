"""Compute the figures of a source tree. Formatting and limits are in `report`."""

import ast
import json
import shutil
import statistics
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.figures.source import (
    Function,
    Module,
    count_lines,
    find_imports,
    is_property,
    is_typed,
    read_tree,
)
from tools.figures.words import RIDDLES, has_verb, is_named_by_participle

D401 = ["check", "--isolated", "--select", "D401", "--ignore-noqa", "--no-cache", "--output-format", "json"]


@dataclass(frozen=True)
class Survey:
    """The modules of a tree and the lists behind its figures.

    `d401` is None if ruff is not installed. `test_lines` is None if no tests were named.
    """

    modules: Sequence[Module]
    twins: str = ""
    d401: Sequence[str] | None = None
    test_lines: int | None = None

    @cached_property
    def functions(self) -> list[tuple[Module, Function]]:
        """Every function with its module."""
        return [(module, function) for module in self.modules for function in module.functions]

    @cached_property
    def named_functions(self) -> list[tuple[Module, Function]]:
        """Every function that the author named: no dunder methods."""
        return [(module, one) for module, one in self.functions if not one.name.startswith("__")]

    @cached_property
    def documented(self) -> list[tuple[Module, Function, str]]:
        """Every function with a docstring, except properties."""
        found = [(module, one, ast.get_docstring(one) or "") for module, one in self.functions]
        return [(module, one, text) for module, one, text in found if text and not is_property(one)]

    @cached_property
    def folders(self) -> dict[str, int]:
        """The number of modules in each folder, the largest first."""
        files = Counter(module.folder for module in self.modules if module.path.name != "__init__.py")
        return dict(files.most_common())

    @cached_property
    def prefixes(self) -> list[str]:
        """Every prefix `x_` that several modules of a folder share, with the modules."""
        groups: dict[tuple[str, str], list[str]] = defaultdict(list)
        for module in self.modules:
            first, underscore, _ = module.path.stem.strip("_").partition("_")
            if underscore:
                groups[module.folder, first].append(module.path.name)
        shared = {place: files for place, files in groups.items() if len(files) > 1}
        return [f"{folder}: {first}_ ({', '.join(files)})" for (folder, first), files in shared.items()]

    @cached_property
    def participles(self) -> list[str]:
        """Every function that is named by a participle."""
        found = [(m, f) for m, f in self.named_functions if not is_property(f) and is_named_by_participle(f.name)]
        return [f"{module.name}.{function.name}" for module, function in found]

    @cached_property
    def verbless(self) -> list[str]:
        """Every function docstring that does not begin with a verb."""
        found = [(module, one, text) for module, one, text in self.documented if not has_verb(text)]
        return [f"{module.name}.{one.name}: {text.splitlines()[0]}" for module, one, text in found]

    @cached_property
    def riddles(self) -> list[str]:
        """Every docstring and comment with riddling phrases, the worst first."""
        counted = [(len(RIDDLES.findall(text)), m, text) for m in self.modules for text in m.prose]
        worst = sorted((one for one in counted if one[0]), key=lambda one: -one[0])
        return [f"{count}  {module.name}: {' '.join(text.split())}" for count, module, text in worst]

    @cached_property
    def riddles_per_1000(self) -> float:
        """Riddling phrases in 1,000 words of docstrings and comments."""
        texts = [text for module in self.modules for text in module.prose]
        count = sum(len(RIDDLES.findall(text)) for text in texts)
        return 1000 * count / max(sum(len(text.split()) for text in texts), 1)

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """Every class name that several modules define, with the modules.

        A name that `twins` and `types` define once each is left out.
        """
        places: dict[str, list[str]] = defaultdict(list)
        for module in self.modules:
            for name in module.classes:
                places[name].append(module.name)
        repeated = {name: sorted(set(modules)) for name, modules in sorted(places.items())}
        return {name: m for name, m in repeated.items() if len(m) > 1 and not self._are_twins(m)}

    def _are_twins(self, modules: Sequence[str]) -> bool:
        of_twins = [name for name in modules if self.twins and f"{name}.".endswith(f".{self.twins}.")]
        return len(of_twins) == 1 and len(modules) == 2

    @cached_property
    def cycles_at_load(self) -> list[list[str]]:
        """Groups of modules that import each other when they are loaded."""
        return self._find_cycles(at_load=True)

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, by any import."""
        return self._find_cycles(at_load=False)

    def _find_cycles(self, *, at_load: bool) -> list[list[str]]:
        names = {module.name for module in self.modules}
        return find_cycles({m.name: find_imports(m, names, at_load=at_load) for m in self.modules})


def survey_tree(root: Path, tests: Sequence[Path] = (), twins: str = "") -> Survey:
    """Read a source tree, count the lines of its tests and run ruff over it."""
    test_lines = sum(module.lines for folder in tests for module in read_tree(folder)) if tests else None
    return Survey(read_tree(root), twins, find_d401(root), test_lines)


def find_d401(root: Path) -> list[str] | None:
    """Return the places of docstrings that are not imperative by ruff's rule D401; None without ruff."""
    ruff = shutil.which("ruff")
    if ruff is None:
        return None
    run = subprocess.run([ruff, *D401, str(root)], capture_output=True, text=True, check=False)
    found = json.loads(run.stdout or "[]")
    return [f"{one['filename']}:{one['location']['row']}: {one['message']}" for one in found if one["code"]]


def find_cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other, the largest first."""
    reached = {name: _reach(graph, name) for name in graph}
    circular = [name for name in graph if name in reached[name]]
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in circular}
    return sorted(map(sorted, groups), key=lambda group: (-len(group), group))


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def compute_figures(survey: Survey) -> dict[str, float | None]:
    """Return every figure of a tree by its name; None if it cannot be computed."""
    modules, functions = survey.modules, survey.functions
    lines = sum(module.lines for module in modules)
    lengths = sorted(count_lines(function) for _, function in functions) or [0]
    files = [module.lines for module in modules if module.lines] or [0]
    d401 = None if survey.d401 is None else 1000 * len(survey.d401) / max(len(functions), 1)
    return {
        "modules": len(modules),
        "lines": lines,
        "functions": len(functions),
        "largest_folder": max(survey.folders.values(), default=0),
        "shared_prefixes": len(survey.prefixes),
        "median_file": statistics.median(files),
        "longest_file": max(files),
        "median_function": statistics.median(lengths),
        "p90_function": lengths[int(len(lengths) * 0.9)],
        "longest_function": lengths[-1],
        "d401_per_1000": d401,
        "without_verb_percent": _percent(len(survey.verbless), len(survey.documented)),
        "participle_percent": _percent(len(survey.participles), len(survey.named_functions)),
        "riddles_per_1000": survey.riddles_per_1000,
        "repeated_classes": len(survey.classes),
        "cycles_at_load": len(survey.cycles_at_load),
        "cycles_all": len(survey.cycles),
        "largest_cycle": max(map(len, survey.cycles), default=0),
        "test_ratio": None if survey.test_lines is None else survey.test_lines / max(lines, 1),
        "comments_per_100": 100 * sum(len(module.comments) for module in modules) / max(lines, 1),
        "typed_percent": _percent(sum(is_typed(one) for _, one in functions), len(functions)),
        "documented_modules_percent": _percent(
            sum(ast.get_docstring(module.tree) is not None for module in modules if module.text),
            sum(bool(module.text) for module in modules),
        ),
    }


def _percent(count: int, of: int) -> float:
    return 100 * count / max(of, 1)
