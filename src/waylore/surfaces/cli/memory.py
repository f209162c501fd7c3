"""`waylore remember`: put conversations into the memory of a user, from a file, an export or a pipe."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from waylore.errors import ConfigError
from waylore.indexing.blocks import Skipped
from waylore.indexing.conversations.dispatch import AUTO, FORMATS, read_conversations
from waylore.surfaces.cli.add import Labels, Pairs
from waylore.surfaces.cli.options import (
    At,
    CollectionName,
    SessionName,
    StoreUrl,
    UserName,
    open_for_writing,
    read_metadata,
)
from waylore.surfaces.cli.setup import set_up_if_unset
from waylore.surfaces.terminal import figures
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, print_result, report_errors
from waylore.types.messages import Conversation
from waylore.types.results import RememberReport


def remember(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...", help="Exports and transcripts; - or none reads a text from standard input."
        ),
    ] = None,
    user: UserName = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Agent that took part.")] = "",
    session: SessionName = "",
    at: At = None,
    format_: Annotated[
        str, typer.Option("--format", "-f", metavar="NAME", help=f"{', '.join((AUTO, *FORMATS))}.")
    ] = AUTO,
    day_first: Annotated[
        bool | None,
        typer.Option("--day-first/--month-first", help="Whether 1/2 is 1 February, if no date of a chat shows it."),
    ] = None,
    tools: Annotated[bool, typer.Option("--tools", help="Also remember calls of tools and their results.")] = False,
    label: Labels = [],  # noqa: B006 (typer copies it)
    metadata: Pairs = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Remember conversations: each message as a turn with its speaker and time.

    A file is an export of ChatGPT, Claude, Slack, WhatsApp or Discord, messages as JSON, or a transcript with a name
    before each line. Messages that are known already change nothing. Without --session a conversation has the session
    of its file.

    Example: `waylore remember conversations.json --user mara`
    """
    with report_errors():
        set_up_if_unset(store, collection)
    with (
        open_for_writing(store, collection) as memory,
        handle_interrupt("Run the same command again to continue."),
    ):
        about = read_metadata(metadata)
        keep = partial(memory.remember, user=user, agent=agent, tools=tools, labels=label, metadata=about)
        if not paths or paths == ["-"]:
            report, skipped = keep(sys.stdin.read(), session=session, at=at), list[Skipped]()
        else:
            found = _read_files(paths, format_, day_first)
            report, skipped = _remember_all(partial(keep, at=at) if at else keep, found, session, tools)
        print_result(report.to_dict(), Group(Text(_summarise(report)), *figures.list_skipped(skipped)), as_json)


def _read_files(paths: list[str], format_: str, day_first: bool | None) -> Iterator[Conversation | Skipped]:
    for path in paths:
        if path == "-":
            raise ConfigError("- reads standard input; leave out the files")
        yield from read_conversations(Path(path), format_, day_first=day_first)


def _remember_all(
    keep: Callable[..., RememberReport], found: Iterator[Conversation | Skipped], session: str, tools: bool
) -> tuple[RememberReport, list[Skipped]]:
    """Remember conversations, each in the given session, or in one of its own."""
    total, skipped = RememberReport(), []
    for each in found:
        if isinstance(each, Skipped):
            skipped.append(each)
        elif messages := [message for message in each.messages if tools or not message.is_tool]:
            total += keep(messages, session=session or each.id, **({"at": each.at} if each.at else {}))
    return total, skipped


def _summarise(report: RememberReport) -> str:
    known = f", {report.known:,} known already" if report.known else ""
    cut = f", {report.cut:,} cut into passages" if report.cut else ""
    facts = f", {shown.count(len(report.facts), 'fact')}" if report.facts else ""
    return f"remembered: {shown.count(report.new, 'new turn')}{known}{cut}{facts}"
