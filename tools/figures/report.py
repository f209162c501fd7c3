"""Format the figures as a table and compare them with the limits of the project."""

from collections.abc import Callable, Mapping, Sequence

from tools.figures.pages import Prose
from tools.figures.survey import Survey, compute_figures

Values = Mapping[str, float | None]

MAX_MODULES_IN_FOLDER = 16
MAX_PARTICIPLE_PERCENT = 2.0
MAX_VERBLESS_PERCENT = 5.0
REPEATED_ON_PURPOSE = frozenset({"WayloreRetriever"})  # one for LangChain, one for LlamaIndex

ROWS: tuple[tuple[str, Sequence[str], str], ...] = (
    ("modules / lines", ("modules", "lines"), ""),
    ("modules in the largest folder", ("largest_folder",), "≤ 16"),
    ("prefixes that modules of a folder share", ("shared_prefixes",), "0"),
    ("median / longest file, lines", ("median_file", "longest_file"), "≤ 400 longest"),
    (
        "function lines: median / p90 / longest",
        ("median_function", "p90_function", "longest_function"),
        "≤ 5 / 14",
    ),
    ("D401 per 1,000 functions", ("d401_per_1000",), "0"),
    ("docstrings of functions without a verb, %", ("without_verb_percent",), "≤ 5"),
    ("functions named by a participle, %", ("participle_percent",), "≤ 2"),
    ("riddling phrases per 1,000 words", ("riddles_per_1000",), "≤ 3"),
    ("class names defined more than once", ("repeated_classes",), "1"),
    ("import cycles at load / all / largest", ("cycles_at_load", "cycles_all", "largest_cycle"), "0 / 0"),
    ("test lines / code lines", ("test_ratio",), "≥ 0.83"),
    ("comments per 100 lines", ("comments_per_100",), "≥ 1.6"),
    ("functions fully typed, %", ("typed_percent",), "100"),
    ("modules with a docstring, %", ("documented_modules_percent",), "100"),
)

LISTS: dict[str, Callable[[Survey], Sequence[str]]] = {
    "classes": lambda survey: [f"{name}: {', '.join(modules)}" for name, modules in survey.classes.items()],
    "cycles": lambda survey: list(map(" ".join, survey.cycles)),
    "d401": lambda survey: survey.d401 or [],
    "folders": lambda survey: [f"{count:4d}  {folder}" for folder, count in survey.folders.items()],
    "participles": lambda survey: survey.participles,
    "prefixes": lambda survey: survey.prefixes,
    "riddles": lambda survey: survey.riddles,
    "verbless": lambda survey: survey.verbless,
}


def format_table(values: Values, pages: Sequence[Prose]) -> str:
    """Return the figures of the source and of the pages as aligned text."""
    source = [(label, " / ".join(_show(values[name]) for name in names), goal) for label, names, goal in ROWS]
    prose = [(f"{one.name}: words", f"{one.words:,}", "") for one in pages]
    prose += [(f"{one.name}: riddling phrases per 1,000", _show(one.per_1000), "≤ 3") for one in pages]
    table = [("", "figure", "goal"), *source, *prose]
    first, second = (max(len(row[column]) for row in table) for column in (0, 1))
    return "\n".join(f"{label:{first}}  {value:{second}}  {goal}".rstrip() for label, value, goal in table)


def _show(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2g}" if value < 1 else f"{value:,.1f}"


def find_broken_limits(survey: Survey) -> list[str]:
    """Return one line for each limit that a tree breaks."""
    values = compute_figures(survey)
    large = {folder: count for folder, count in survey.folders.items() if count > MAX_MODULES_IN_FOLDER}
    repeated = {name: places for name, places in survey.classes.items() if name not in REPEATED_ON_PURPOSE}
    return [
        *(f"{folder} has {count} modules, at most {MAX_MODULES_IN_FOLDER}" for folder, count in large.items()),
        *(f"modules share a prefix in {one}" for one in survey.prefixes),
        *_check_d401(survey),
        *_check_share(values, "participle_percent", MAX_PARTICIPLE_PERCENT, "participles"),
        *_check_share(values, "without_verb_percent", MAX_VERBLESS_PERCENT, "verbless"),
        *(f"class {name} is defined in {', '.join(places)}" for name, places in repeated.items()),
        *(f"import cycle at load: {' '.join(group)}" for group in survey.cycles_at_load),
        *(f"import cycle: {' '.join(group)}" for group in survey.cycles),
    ]


def _check_d401(survey: Survey) -> list[str]:
    if survey.d401 is None:
        return ["D401 was not counted: install ruff"]
    count = len(survey.d401)
    return [f"d401 finds {count} docstrings, at most 0; see --list d401"] if count else []


def _check_share(values: Values, name: str, limit: float, listed: str) -> list[str]:
    share = values[name] or 0.0
    return [f"{name} is {share:.1f}, at most {limit:g}; see --list {listed}"] if share > limit else []
