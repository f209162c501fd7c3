"""`waylore doctor`, `config` and `completion`: check this machine, show the settings, complete in a shell."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text
from typer._completion_shared import get_completion_script  # private; see the pin in pyproject.toml

from waylore.errors import ConfigError
from waylore.fence import neutralize
from waylore.service.salvage import DamagedDocument, salvage
from waylore.settings.load import Setting, check_settings, load
from waylore.surfaces.checks.findings import Finding
from waylore.surfaces.checks.run import run_checks
from waylore.surfaces.cli.options import CollectionName, StoreUrl, keep_given
from waylore.surfaces.error_kinds import find_kind
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, print_result, report_errors, show_status
from waylore.surfaces.terminal.tables import make_table

Shell = Literal["bash", "zsh", "fish", "powershell", "pwsh"]
MARKS = {"good": ("✓", "green"), "note": ("•", "yellow"), "wrong": ("✗", "bold red")}


def doctor(
    store: StoreUrl = "",
    collection: CollectionName = "",
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also compare every document with its digest and with all indexes; check a server's tables.",
        ),
    ] = False,
    repair: Annotated[
        Path | None,
        typer.Option("--repair", metavar="NEW", help="Write the intact documents of a damaged file to NEW."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, model, store, collection and disk, and name a remedy for each problem.

    Exits with 1 if a problem was found. Changes nothing. Reads every page of a file.

    Example: `waylore doctor --deep`
    """
    if repair:
        _repair(store, repair, as_json)
        return
    with report_errors(), show_status("checking"):
        findings = list(run_checks(deep, **keep_given(store=store, collection=collection)))
    people = Group(*map(_render_finding, findings), _render_verdict(findings))
    print_result([asdict(finding) for finding in findings], people, as_json)
    if _count_problems(findings):
        raise typer.Exit(1)


def _repair(store: str, new: Path, as_json: bool) -> None:
    with report_errors(), show_status("reading pages"):
        found = salvage(store or load().store, new)
    whole = ", ".join(f"{name} ({shown.count(each, 'document')})" for name, each in found.documents.items())
    lines = [Text(f"{new}: {whole or 'no documents'}", "bold"), *map(_render_damaged, found.damaged)]
    if found.lost:
        lines.append(Text(f"✗ {shown.count(found.lost, 'document')} lost, known only from the count", "red"))
    lines.append(Text("→ give it vectors with `waylore reembed`, and add the damaged documents again", "cyan"))
    print_result(asdict(found), Group(*lines), as_json)
    if found.damaged or found.lost:
        raise typer.Exit(1)


def _render_damaged(document: DamagedDocument) -> Text:
    return Text(f"✗ damaged: {neutralize(document.uri or document.id).text} in {document.collection}", "red")


def _render_finding(finding: Finding) -> Table:
    mark, style = MARKS[finding.state]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=10, style="bold")
    table.add_column()
    remedy = f"\n→ {neutralize(finding.remedy).text}" if finding.remedy else ""
    message = Text.assemble(neutralize(finding.message).text, (remedy, "cyan"))
    table.add_row(Text(mark, style), finding.subject, message)
    return table


def _render_verdict(findings: list[Finding]) -> Text:
    if problems := _count_problems(findings):
        return Text(f"\n{shown.count(problems, 'problem')} found", "bold red")
    return Text("\nNo problems found", "bold green")


def _count_problems(findings: list[Finding]) -> int:
    return sum(finding.state == "wrong" for finding in findings)


def config(store: StoreUrl = "", collection: CollectionName = "", as_json: AsJson = False) -> None:
    """Show every setting with its origin.

    A setting that cannot be used is marked, and the exit code is 2. The first of these places wins: an option, an
    environment variable, a secret file, `.env`, `waylore.toml` here or in a parent folder, your own
    `waylore/config.toml`, the default. A variable is the name in capitals, such as `WAYLORE_HTTP_PORT`.

    Example: `waylore config`
    """
    with report_errors():
        known = list(check_settings(**keep_given(store=store, collection=collection)))
        problems = [Text(f"✗ {neutralize(one.problem).text}", "bold red") for one in known if one.problem]
        print_result([asdict(one) for one in known], Group(_render_settings(known), *problems), as_json)
        if problems:
            raise typer.Exit(find_kind(ConfigError()).exit_code)


def _render_settings(known: list[Setting]) -> Table:
    columns = Column("setting", no_wrap=True), Column("value", overflow="fold"), Column("from", overflow="fold")
    table = make_table(*columns)
    for one in known:
        is_set = one.source != "default"
        style = "bold red" if one.problem else "bold green" if is_set else ""
        name = Text(f"✗ {neutralize(one.name).text}", style) if one.problem else one.name
        table.add_row(name, Text(neutralize(one.value).text, style), Text(one.source, "" if is_set else "dim"))
    return table


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.", show_default=False)]) -> None:
    """Print the completion script for a shell.

    Example: `waylore completion bash >> ~/.bashrc`
    """
    words = {"prog_name": "waylore", "complete_var": "_WAYLORE_COMPLETE", "shell": shell}
    typer.echo(get_completion_script(**words))
