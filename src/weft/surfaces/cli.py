"""The command line, through typer and rich: which commands there are, and nothing else.

Tables and trees for people, `--json` for programs; an error is one line on stderr that says what to do next, and
the exit code tells its kind (`terminal`). What a command does is done elsewhere: nothing in `cli_*` decides.
"""

import typer

from weft.surfaces.cli_cells import cells_app, collections_app

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Memory and knowledge retrieval.")
app.add_typer(cells_app, name="cells")
app.add_typer(collections_app, name="collections")
