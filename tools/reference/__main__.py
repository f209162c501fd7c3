"""Write the pages of the reference from the code: commands, settings, public names, routes.

    python -m tools.reference            write docs/reference
    python -m tools.reference --check    exit with 1 if a page differs from the code

Each page has a function that builds its text; `PAGES` lists them. `tools.reference.http` builds the page of
routes.
"""

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from tools.reference.http import build_http_page

import waylore
from waylore.evaluation.__main__ import create_parser
from waylore.settings.load import list_settings
from waylore.settings.sections import Section, Settings
from waylore.surfaces.cli.app import app

PAGES_FOLDER = Path(__file__).parents[2] / "docs" / "reference"
GENERATED_NOTE = "<!-- Written by `python -m tools.reference`: change the code, not this page. -->"
MAX_DEFAULT_LENGTH = 24  # characters; longer default values are shown as …


# -- commands ------------------------------------------------------------------------------------------


def build_cli_page() -> str:
    """Build the page of commands with their arguments and options."""
    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        GENERATED_NOTE,
        _join_lines(root.help),
        "For examples see [the command line](../how-to/command-line.md).",
    ]
    for name, command in _iterate_commands(root, "waylore"):
        parts += [f"## {name}", _join_lines(command.help), *_format_parameters(name, command)]
    return _join_parts(parts)


def _iterate_commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for child in group.commands.values():
        full = f"{name} {child.name}"
        if hasattr(child, "commands"):
            yield from _iterate_commands(child, full)
        else:
            yield full, child


def _format_parameters(name: str, command: Any) -> list[str]:
    if name == "waylore eval":
        listed = create_parser(name)._actions[1:]
        rows = [(f"`{(*a.option_strings, a.metavar)[0]}`", a.help or ", ".join(a.choices or ())) for a in listed]
        return [_format_optional_table("Option", "", rows)]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([name, *map(_format_argument, arguments), "[OPTIONS]" if options else ""]).strip()
    tables = [
        _format_optional_table("Argument", "", [(f"`{_format_argument(p)}`", _format_help(p)) for p in arguments]),
        _format_optional_table("Option", "", [(_format_option(p), _format_help(p)) for p in options]),
    ]
    return [f"```console\n{usage}\n```", *filter(None, tables)]


def _format_argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.strip("_").upper()).removesuffix("...").strip("[]")
    shown = name + ("…" if parameter.nargs == -1 else "")
    return shown if parameter.required else f"[{shown}]"


def _format_option(parameter: Any) -> str:
    value = f" {parameter.metavar}" if parameter.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in parameter.opts)


def _format_help(parameter: Any) -> str:
    default = parameter.default
    is_shown = default not in (None, "", False, [], ()) and not callable(default)
    return (parameter.help or "") + (f" Default: `{default}`." if is_shown else "")


# -- settings ------------------------------------------------------------------------------------------


def build_settings_page() -> str:
    """Build the page of settings with their variables and defaults."""
    defaults = Settings.model_construct()
    known = {one.name: one for one in list_settings(defaults)}
    intro = (
        "A setting is taken from the first of these sources that has it: an option of a command, an "
        "environment variable, a file in `/run/secrets` or in the credentials folder of systemd, `.env`, "
        "`waylore.toml` in the working folder, your own `~/.config/waylore/config.toml`, the default. "
        "`waylore config` shows the source of each value."
    )
    parts = ["# Settings", GENERATED_NOTE, intro]
    sections = {name: value for name, value in vars(defaults).items() if isinstance(value, Section)}
    for section in ("", *sections):
        rows = [
            (
                f"`{name}`",
                f"`{one.variable}`",
                f"`{one.value}`" if one.value else "",
                one.description,
            )
            for name, one in known.items()
            if name.rpartition(".")[0] == section
        ]
        about = inspect.getdoc(sections[section]) if section else "These stand at the top of the file."
        parts += [
            f"## `[{section}]`" if section else "## The store",
            about or "",
            _format_table(SETTINGS_HEAD, rows),
        ]
    return _join_parts(parts)


SETTINGS_HEAD = ("Setting", "Variable", "Default", "")


# -- public names --------------------------------------------------------------------------------------


def build_python_page() -> str:
    """Build the page of the public names of `waylore`, with their parameters and docstrings."""
    intro = "The public names of `waylore`. Each method of `Waylore` has an async twin: `asearch`, `aadd` …"
    parts = ["# Python", GENERATED_NOTE, intro]
    for name in waylore.__all__:
        parts += _describe_name(name, getattr(waylore, name))
    return _join_parts(parts)


def _describe_name(name: str, thing: Any) -> Iterator[str]:
    yield f"## `{name}`"
    if not inspect.isclass(thing):
        yield f"A `{type(thing).__name__}`."
        return
    yield inspect.getdoc(thing) or ""
    if dataclasses.is_dataclass(thing):
        yield _format_optional_table(
            "Field",
            "Type",
            [(f"`{f.name}`", f"`{_format_annotation(f.type)}`") for f in dataclasses.fields(thing)],
        )
    for member, function in vars(thing).items():
        if not member.startswith("_"):
            yield from _describe_member(thing, member, function)


def _describe_member(owner: type, name: str, member: Any) -> Iterator[str]:
    is_twin = name.startswith("a") and hasattr(owner, name[1:])
    if isinstance(member, property):
        yield f"**`.{name}`** {_join_words(inspect.getdoc(member))}"
    elif isinstance(member, classmethod) or (inspect.isfunction(member) and not is_twin):
        yield f"### `{owner.__name__}.{name}`"
        yield f"```text\n{_format_signature(getattr(owner, name), name)}\n```"
        yield _format_docstring(inspect.getdoc(member) or "", inspect.signature(getattr(owner, name)).parameters)


def _format_docstring(text: str, parameters: Container[str]) -> str:
    """Format the lines that describe parameters as a list, because Markdown joins lines."""
    lines = []
    for line in text.splitlines():
        names, colon, about = line.partition(": ")
        is_item = colon and all(name in parameters for name in names.split(", "))
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        lines.append(f"- {shown}: {about}" if is_item else line.removeprefix("  "))
    return "\n".join(lines)


def _format_signature(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    shown, is_keyword = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            shown.append("*")
        is_keyword = is_keyword or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        shown.append(_format_parameter(parameter))
    result = _format_annotation(signature.return_annotation)
    line = f"{name}({', '.join(shown)}) -> {result}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f") -> {result}"


def _format_parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = repr(parameter.default)
    shown = default if len(default) <= MAX_DEFAULT_LENGTH and "<" not in default else "…"
    value = "" if parameter.default is parameter.empty else f" = {shown}"
    return f"{star}{parameter.name}: {_format_annotation(parameter.annotation)}{value}"


def _format_annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"numpy\.ndarray\[.*?float32\]\]", "Vector", text)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])|\bdatetime\.(?=date)", "", text)


# -- pages ---------------------------------------------------------------------------------------------


def _join_lines(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _join_words(text: str | None) -> str:
    return " ".join((text or "").split())


def _format_optional_table(first: str, second: str, rows: Sequence[tuple[str, str]]) -> str:
    return _format_table((first, second), rows) if rows else ""


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def _join_parts(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": build_cli_page,
    "settings.md": build_settings_page,
    "python.md": build_python_page,
    "http.md": build_http_page,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or with `--check` print which pages differ from the code."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page would change")
    options = parser.parse_args(arguments)
    stale = [name for name, page in PAGES.items() if _read_page(PAGES_FOLDER / name) != page()]
    for name in stale:
        if options.check:
            print(f"docs/reference/{name} differs from the code; run `python -m tools.reference`")
        else:
            PAGES_FOLDER.mkdir(parents=True, exist_ok=True)
            (PAGES_FOLDER / name).write_text(PAGES[name](), "utf-8")
    return 1 if options.check and stale else 0


def _read_page(page: Path) -> str:
    return page.read_text("utf-8") if page.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
