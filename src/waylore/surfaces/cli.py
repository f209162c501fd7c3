"""The command line, through typer and rich: which commands there are, and nothing else.

Tables and trees for people, `--json` for programs; an error is one line on stderr that says what to do next,
and the exit code tells its kind (`cli_terminal`). What a command does is done elsewhere: no `cli_*` decides.
"""

from typing import Annotated

import typer
from typer._completion_classes import completion_init

import waylore
from waylore.surfaces import cli_adding, cli_asking, cli_checking, cli_keeping
from waylore.surfaces.cli_cells import cells_app, collections_app
from waylore.surfaces.cli_mcp import mcp_app
from waylore.surfaces.cli_serving import keys_app, serve
from waylore.surfaces.cli_worker import worker

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

app.command(rich_help_panel=BEGIN)(cli_adding.init)
app.command(rich_help_panel=BEGIN)(cli_adding.add)
app.command("import", rich_help_panel=BEGIN)(cli_adding.import_)

app.command(rich_help_panel=ASK)(cli_asking.search)
app.command("ask-why", rich_help_panel=ASK)(cli_asking.ask_why)
app.command(rich_help_panel=ASK)(cli_asking.graph)
app.command(rich_help_panel=ASK)(cli_asking.facts)
app.command(rich_help_panel=ASK)(cli_asking.stats)

app.command(rich_help_panel=KEEP)(cli_keeping.forget)
app.command(rich_help_panel=KEEP)(cli_keeping.export)
app.command(rich_help_panel=KEEP)(cli_keeping.reembed)
app.command("eval", rich_help_panel=KEEP, **cli_keeping.EVALUATE)(cli_keeping.evaluate)

app.command(rich_help_panel=RUN)(serve)
app.command(rich_help_panel=RUN)(worker)
app.add_typer(keys_app, name="keys", rich_help_panel=RUN)
app.add_typer(mcp_app, name="mcp", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(cli_checking.doctor)
app.command(rich_help_panel=RUN)(cli_checking.config)
app.command(rich_help_panel=RUN)(cli_checking.completion)
app.add_typer(cells_app, name="cells", rich_help_panel=RUN)
app.add_typer(collections_app, name="collections", rich_help_panel=RUN)
