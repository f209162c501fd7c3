"""`waylore doctor`, `config` and `completion`: whether Waylore can work here, and with which settings."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text
from typer._completion_shared import get_completion_script  # what `--show-completion` would print

from waylore.settings.load import Setting, load, told
from waylore.surfaces.checks import Finding, findings
from waylore.surfaces.cli.options import InCollection, StoreAt, given
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, tell, told_errors, working

Shell = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
MARKS = {"good": ("✓", "green"), "note": ("•", "yellow"), "wrong": ("✗", "bold red")}


def doctor(store: StoreAt = "", collection: InCollection = "", as_json: AsJson = False) -> None:
    """Find what is wrong here, and say what to do.

    Exits with 1 if something is wrong. Changes nothing.
    """
    with told_errors(), working("looking"):
        found = list(findings(**given(store=store, collection=collection)))
    tell([asdict(finding) for finding in found], Group(*map(_told, found), _verdict(found)), as_json)
    if _wrong(found):
        raise typer.Exit(1)


def _told(finding: Finding) -> Table:
    mark, style = MARKS[finding.state]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=10, style="bold")
    table.add_column()
    remedy = f"\n→ {shown.plain(finding.remedy)}" if finding.remedy else ""
    table.add_row(Text(mark, style), finding.about, Text.assemble(shown.plain(finding.told), (remedy, "cyan")))
    return table


def _verdict(found: list[Finding]) -> Text:
    wrong = _wrong(found)
    if wrong:
        return Text(f"\n{wrong} to mend", "bold red")
    return Text("\nall is well", "bold green")


def _wrong(found: list[Finding]) -> int:
    return sum(finding.state == "wrong" for finding in found)


def config(store: StoreAt = "", collection: InCollection = "", as_json: AsJson = False) -> None:
    """Show every setting and where it came from.

    The first wins: an option, a variable, `.env`, `waylore.toml`, your own `waylore/config.toml`, its default.
    """
    with told_errors():
        options = given(store=store, collection=collection)
        known = list(told(load(**options), **options))
        tell([asdict(one) for one in known], _settings(known), as_json)


def _settings(known: list[Setting]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", border_style="dim")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    table.add_column("variable", no_wrap=True, style="dim")
    for one in known:
        is_set = one.source != "default"
        value = Text(shown.plain(one.value), "bold green" if is_set else "")
        table.add_row(one.name, value, Text(one.source, "" if is_set else "dim"), one.variable)
    return table


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.", show_default=False)]) -> None:
    """Print the script that completes in your shell.

    `waylore completion bash >> ~/.bashrc`, for example.
    """
    words = {"prog_name": "waylore", "complete_var": "_WAYLORE_COMPLETE", "shell": shell}
    typer.echo(get_completion_script(**words))
