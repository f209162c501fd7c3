"""The command line, through typer and rich: which commands there are, and nothing else.

Tables and trees for people, `--json` for programs; an error is one line on stderr that says what to do next,
and the exit code tells its kind (`cli_terminal`). What a command does is done elsewhere: no `cli_*` decides.
"""

from typing import Annotated

import typer
from typer._completion_classes import completion_init

import waylore
from waylore.surfaces.cli import add, doctor, graph, init, maintain, search
from waylore.surfaces.cli.keys import keys_app
from waylore.surfaces.cli.mcp import mcp_app
from waylore.surfaces.cli.operate import cells_app, collections_app
from waylore.surfaces.cli.serve import serve, worker

BEGIN, ASK, KEEP, RUN = "Begin and add", "Ask", "Keep", "Run"


def _version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"waylore {waylore.__version__}")
        raise typer.Exit


def _waylore(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Memory and knowledge retrieval for agents: vectors, words and a graph of facts in one search."""


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,  # `waylore completion` does that
    context_settings={"help_option_names": ["-h", "--help"]},
    callback=_waylore,
)
completion_init()

app.command(rich_help_panel=BEGIN)(init.init)
app.command(rich_help_panel=BEGIN)(add.add)
app.command("import", rich_help_panel=BEGIN)(add.import_)

app.command(rich_help_panel=ASK)(search.search)
app.command("ask-why", rich_help_panel=ASK)(search.ask_why)
app.command(rich_help_panel=ASK)(graph.graph)
app.command(rich_help_panel=ASK)(graph.facts)
app.command(rich_help_panel=ASK)(graph.stats)

app.command(rich_help_panel=KEEP)(maintain.forget)
app.command(rich_help_panel=KEEP)(maintain.export)
app.command(rich_help_panel=KEEP)(maintain.reembed)
app.command("eval", rich_help_panel=KEEP, **maintain.EVALUATE)(maintain.evaluate)

app.command(rich_help_panel=RUN)(serve)
app.command(rich_help_panel=RUN)(worker)
app.add_typer(keys_app, name="keys", rich_help_panel=RUN)
app.add_typer(mcp_app, name="mcp", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(doctor.doctor)
app.command(rich_help_panel=RUN)(doctor.config)
app.command(rich_help_panel=RUN)(doctor.completion)
app.add_typer(cells_app, name="cells", rich_help_panel=RUN)
app.add_typer(collections_app, name="collections", rich_help_panel=RUN)
