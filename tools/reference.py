"""Writes the pages of the reference from the code: commands, settings, public names, routes.

    python -m tools.reference            write docs/reference
    python -m tools.reference --check    1, if a page is not what the code says

A page is a function that returns its text; `PAGES` names it.
"""

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from tools.reference_http import http

import waylore
from waylore.evaluation.__main__ import parser_of
from waylore.settings.load import Settings, told
from waylore.settings.sections import Section
from waylore.surfaces.cli.app import app

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written by `python -m tools.reference`: change the code, not this page. -->"
LONGEST = 24  # characters of a default value that is shown


# -- commands ------------------------------------------------------------------------------------------


def cli() -> str:
    """Every command with its arguments and options."""
    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        NOTE,
        _paragraphs(root.help),
        "How they are used: [the command line](../how-to/command-line.md).",
    ]
    for name, command in _commands(root, "waylore"):
        parts += [f"## {name}", _paragraphs(command.help), *_parameters(name, command)]
    return _page(parts)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for child in group.commands.values():
        full = f"{name} {child.name}"
        if hasattr(child, "commands"):
            yield from _commands(child, full)
        else:
            yield full, child


def _parameters(name: str, command: Any) -> list[str]:
    if name == "waylore eval":
        listed = parser_of(name)._actions[1:]
        rows = [(f"`{a.option_strings[0]}`", a.help or ", ".join(a.choices or ())) for a in listed]
        return [_table("Option", "", rows)]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([name, *map(_argument, arguments), "[OPTIONS]" if options else ""]).strip()
    tables = [
        _table("Argument", "", [(f"`{_argument(p)}`", _help(p)) for p in arguments]),
        _table("Option", "", [(_option(p), _help(p)) for p in options]),
    ]
    return [f"```console\n{usage}\n```", *filter(None, tables)]


def _argument(parameter: Any) -> str:
    name = parameter.name.strip("_").upper() + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    value = f" {parameter.metavar}" if parameter.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in parameter.opts)


def _help(parameter: Any) -> str:
    default = parameter.default
    is_telling = default not in (None, "", False, [], ()) and not callable(default)
    return (parameter.help or "") + (f" Default: `{default}`." if is_telling else "")


# -- settings ------------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting with its variable and default."""
    defaults = Settings.model_construct()
    known = {one.name: one for one in told(defaults)}
    intro = (
        "The first wins: an option of a command, an environment variable, `.env`, `waylore.toml` in the working "
        "folder, your own `~/.config/waylore/config.toml`, the default. `waylore config` shows which it was."
    )
    parts = ["# Settings", NOTE, intro]
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
        about = inspect.getdoc(sections[section]) if section else "At the top of the file."
        parts += [f"## `[{section}]`" if section else "## The store", about or "", _rows(HEAD, rows)]
    return _page(parts)


HEAD = ("Setting", "Variable", "Default", "")


# -- public names --------------------------------------------------------------------------------------


def python() -> str:
    """The public names of `waylore`, with what they take and what they are for."""
    intro = "What `from waylore import …` gives. Methods of `Waylore` have twins that are awaited: `asearch`, `aadd` …"
    parts = ["# Python", NOTE, intro]
    for name in waylore.__all__:
        parts += _name(name, getattr(waylore, name))
    return _page(parts)


def _name(name: str, thing: Any) -> Iterator[str]:
    yield f"## `{name}`"
    if not inspect.isclass(thing):
        yield f"A `{type(thing).__name__}`."
        return
    yield inspect.getdoc(thing) or ""
    if dataclasses.is_dataclass(thing):
        yield _table(
            "Field", "Type", [(f"`{f.name}`", f"`{_annotation(f.type)}`") for f in dataclasses.fields(thing)]
        )
    for member, function in vars(thing).items():
        if not member.startswith("_"):
            yield from _member(thing, member, function)


def _member(owner: type, name: str, member: Any) -> Iterator[str]:
    is_twin = name.startswith("a") and hasattr(owner, name[1:])
    if isinstance(member, property):
        yield f"**`.{name}`** {_flowing(inspect.getdoc(member))}"
    elif isinstance(member, classmethod) or (inspect.isfunction(member) and not is_twin):
        yield f"### `{owner.__name__}.{name}`"
        yield f"```text\n{_signature(getattr(owner, name), name)}\n```"
        yield inspect.getdoc(member) or ""


def _signature(function: Callable[..., Any], name: str) -> str:
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    shown, is_keyword = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            shown.append("*")
        shown.append(_parameter(parameter))
    result = _annotation(signature.return_annotation)
    line = f"{name}({', '.join(shown)}) -> {result}"
    return (
        line
        if len(line) <= 100
        else f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f") -> {result}"
    )


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = repr(parameter.default)
    shown = default if len(default) <= LONGEST and "<" not in default else "…"
    value = "" if parameter.default is parameter.empty else f" = {shown}"
    return f"{star}{parameter.name}: {_annotation(parameter.annotation)}{value}"


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"numpy\.ndarray\[.*?float32\]\]", "Vector", text)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])|\bdatetime\.(?=datetime)", "", text)


# -- pages ---------------------------------------------------------------------------------------------


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _flowing(text: str | None) -> str:
    return " ".join((text or "").split())


def _table(first: str, second: str, rows: Sequence[tuple[str, str]]) -> str:
    return _rows((first, second), rows) if rows else ""


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def _page(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "settings.md": settings,
    "python.md": python,
    "http.md": http,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or say which are not what the code says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1, if a page would change")
    given = parser.parse_args(arguments)
    stale = [name for name, page in PAGES.items() if _written(FOLDER / name) != page()]
    for name in stale:
        if given.check:
            print(f"docs/reference/{name} is not what the code says: run `python -m tools.reference`")
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            (FOLDER / name).write_text(PAGES[name](), "utf-8")
    return 1 if given.check and stale else 0


def _written(page: Path) -> str:
    return page.read_text("utf-8") if page.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
