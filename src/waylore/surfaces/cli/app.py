"""Define the command `waylore`: the table of its subcommands, loaded one by one.

A subcommand is imported when it runs or when its help is printed, so that `waylore search` loads neither the
HTTP service nor cells. Commands print tables and trees for people and `--json` for programs. An error is one
line on stderr that names the next step, and the exit code names its kind (`surfaces.error_kinds`). This module
does not define what a command does.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer._completion_classes import completion_init  # private; typer is pinned below the next minor version
from typer.core import TyperGroup
from typer.main import get_group

import waylore

ADD, SEARCH, MAINTAIN, OPERATE = "Add", "Search", "Maintain", "Operate"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A subcommand: its panel in the help, and `module:name` of its function or group in this package."""

    panel: str
    place: str
    options: Mapping[str, Any] = field(default_factory=dict)


COMMANDS = {
    "init": CommandEntry(ADD, "setup:init"),
    "add": CommandEntry(ADD, "add:add"),
    "load": CommandEntry(ADD, "load:load"),
    "import": CommandEntry(ADD, "add:import_"),
    "remember": CommandEntry(ADD, "memory:remember"),
    "hooks": CommandEntry(ADD, "memory:hooks_app"),
    "search": CommandEntry(SEARCH, "search:search"),
    "explain": CommandEntry(SEARCH, "search:explain"),
    "list": CommandEntry(SEARCH, "browse:list_"),
    "show": CommandEntry(SEARCH, "browse:show"),
    "related": CommandEntry(SEARCH, "browse:related"),
    "connect": CommandEntry(SEARCH, "browse:connect"),
    "entities": CommandEntry(SEARCH, "browse:entities"),
    "facts": CommandEntry(SEARCH, "browse:facts"),
    "profile": CommandEntry(SEARCH, "memory:profile"),
    "changes": CommandEntry(SEARCH, "memory:changes"),
    "timeline": CommandEntry(SEARCH, "memory:timeline"),
    "stats": CommandEntry(SEARCH, "browse:stats"),
    "explore": CommandEntry(SEARCH, "serve:explore"),
    "forget": CommandEntry(MAINTAIN, "forget:forget"),
    "compact": CommandEntry(MAINTAIN, "maintain:compact"),
    "export": CommandEntry(MAINTAIN, "maintain:export"),
    "enrich": CommandEntry(MAINTAIN, "add:enrich"),
    "reembed": CommandEntry(MAINTAIN, "maintain:reembed"),
    "tune": CommandEntry(MAINTAIN, "maintain:tune"),
    "eval": CommandEntry(
        MAINTAIN,
        "maintain:evaluate",
        # The evaluation has its own parser, also for `--help`.
        {
            "add_help_option": False,
            "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
        },
    ),
    "serve": CommandEntry(OPERATE, "serve:serve"),
    "worker": CommandEntry(OPERATE, "serve:worker"),
    "migrate": CommandEntry(OPERATE, "serve:migrate"),
    "backup": CommandEntry(OPERATE, "operate:backup"),
    "restore": CommandEntry(OPERATE, "operate:restore"),
    "audit": CommandEntry(OPERATE, "maintain:audit"),
    "quarantine": CommandEntry(OPERATE, "forget:quarantine"),
    "doctor": CommandEntry(OPERATE, "doctor:doctor"),
    "config": CommandEntry(OPERATE, "doctor:config"),
    "completion": CommandEntry(OPERATE, "doctor:completion"),
    "keys": CommandEntry(OPERATE, "keys:keys_app"),
    "mcp": CommandEntry(OPERATE, "mcp:mcp_app"),
    "trust": CommandEntry(OPERATE, "operate:trust"),
    "cells": CommandEntry(OPERATE, "operate:cells_app"),
    "collections": CommandEntry(OPERATE, "operate:collections_app"),
    "index": CommandEntry(OPERATE, "indexes.commands:index_app"),
}

GUESSES = {  # commands of other programs, and ours
    "ask-why": "explain",
    "delete": "forget",
    "rm": "forget",
    "query": "search",
    "ls": "list",
    "cat": "show",
    "ingest": "add",
}


@cache
def load_command(name: str) -> Any:
    """Import the subcommand `name` and build its parser."""
    entry = COMMANDS[name]
    module, _, attribute = entry.place.partition(":")
    try:
        target = getattr(import_module(f"waylore.surfaces.cli.{module}"), attribute)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "waylore":
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'waylore[cli]'")
    parent = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(target, typer.Typer):
        parent.add_typer(target, name=name, rich_help_panel=entry.panel)
    else:
        parent.command(name, rich_help_panel=entry.panel, **entry.options)(target)
    return get_group(parent).commands[name]


class LazyCommands(Mapping[str, Any]):
    """The subcommands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return load_command(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a subcommand. A KeyError while its module is imported is raised, because the subcommand exists."""
        return load_command(name) if name in COMMANDS else default

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """A group of commands that loads a subcommand when it is looked up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "commands": LazyCommands()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the subcommand; for a command of another program, name ours."""
        if args and args[0] in GUESSES:
            ctx.fail(f"no command {args[0]}; use `waylore {GUESSES[args[0]]}`")
        return super().resolve_command(ctx, args)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"waylore {waylore.__version__}")
        raise typer.Exit


def _waylore(
    version: Annotated[  # noqa: ARG001 (its callback prints the version)
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Memory and knowledge retrieval for agents: vectors, words and a graph of facts in one search."""
    from waylore.settings.load import list_old_settings  # noqa: PLC0415 (not for --help and --version)

    if old := ", ".join(f"{name} is now {new}" for name, new in list_old_settings()):
        typer.echo(f"waylore: settings of the old name are not read: {old}", err=True)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,  # `waylore completion` prints the script instead
    context_settings={"help_option_names": ["-h", "--help"]},
    callback=_waylore,
)
completion_init()
