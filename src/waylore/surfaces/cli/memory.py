"""`waylore remember`, `hooks`, `profile`, `changes` and `timeline`: the memory of a user.

Conversations come from a file, an export or a pipe, or from hooks of a coding agent. The other commands show the facts
of the memory.
"""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

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
    Expires,
    SessionName,
    StoreUrl,
    UserName,
    build_filter,
    open_for_search,
    open_for_writing,
    open_without_models,
    parse_date,
    read_metadata,
)
from waylore.surfaces.cli.options import Labels as SeenLabels
from waylore.surfaces.cli.setup import set_up_if_unset
from waylore.surfaces.mcp import clients, hooks
from waylore.surfaces.terminal import figures, views
from waylore.surfaces.terminal import hits as shown
from waylore.surfaces.terminal.output import AsJson, handle_interrupt, print_result, report_errors
from waylore.surfaces.tools import session as session_hooks
from waylore.types.messages import Conversation
from waylore.types.results import RememberReport

ItemLimit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Number of newest lines.")]
From = Annotated[
    datetime | None, typer.Option("--since", metavar="DATE", parser=parse_date, help="Only from this date on.")
]
Before = Annotated[
    datetime | None, typer.Option("--until", metavar="DATE", parser=parse_date, help="Only before this date.")
]


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
    expires: Expires = None,
    format_: Annotated[
        str, typer.Option("--format", "-f", metavar="NAME", help=f"{', '.join((AUTO, *FORMATS))}.")
    ] = AUTO,
    day_first: Annotated[
        bool | None,
        typer.Option("--day-first/--month-first", help="Whether 1/2 is 1 February, if no date of a chat shows it."),
    ] = None,
    tools: Annotated[bool, typer.Option("--tools", help="Also store calls of tools and their results.")] = False,
    label: Labels = [],  # noqa: B006 (typer copies it)
    metadata: Pairs = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Remember conversations: each message as a turn with its speaker and time.

    A file is an export of ChatGPT, Claude, Slack, WhatsApp or Discord, messages as JSON, or a transcript with a name
    before each line. Messages that are already stored change nothing. Without --session, the session of a conversation
    is the one in its file.

    Example: `waylore remember conversations.json --user mara`
    """
    with report_errors():
        set_up_if_unset(store, collection)
    with (
        open_for_writing(store, collection) as memory,
        handle_interrupt("Run the same command again to continue."),
    ):
        about = read_metadata(metadata)
        keep = partial(
            memory.remember, user=user, agent=agent, tools=tools, labels=label, metadata=about, expires=expires
        )
        if not paths or paths == ["-"]:
            report, skipped = keep(sys.stdin.read(), session=session, at=at), list[Skipped]()
        else:
            found = _read_files(paths, format_, day_first)
            report, skipped = _remember_all(partial(keep, at=at) if at else keep, found, session, tools)
        print_result(report.to_dict(), Group(Text(_summarise(report)), *figures.list_skipped(skipped)), as_json)


def profile(
    user: Annotated[str, typer.Argument(metavar="USER", help="User; none for a memory without users.")] = "",
    budget: Annotated[
        int, typer.Option("--max-tokens", metavar="N", min=1, help="Length of all lines in tokens.")
    ] = 400,
    label: SeenLabels = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show the current facts about a user, one line for each relation.

    The most used relations come first, then the newest.

    Example: `waylore profile mara`
    """
    with open_without_models(store, collection) as memory:
        found = memory.profile(user, budget, where=build_filter(label, ()))
        print_result(found.to_dict(), views.render_profile(found), as_json)


def changes(
    user: UserName = "",
    since: From = None,
    until: Before = None,
    entity: Annotated[str, typer.Option("--entity", metavar="NAME", help="Only changes of this entity.")] = "",
    limit: ItemLimit = 100,
    label: SeenLabels = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show facts that began, changed, were corrected or ended, in order of time.

    Example: `waylore changes --user mara --since 2026-03-01`
    """
    with open_without_models(store, collection) as memory:
        where = build_filter(label, ())
        found = memory.changes(user=user, since=since, until=until, entity=entity, limit=limit, where=where)
        print_result(found.to_dict(), views.render_changes(found), as_json)


def timeline(
    entity: Annotated[str, typer.Argument(metavar="NAME", help="Name of the entity.", show_default=False)],
    user: UserName = "",
    since: From = None,
    until: Before = None,
    limit: ItemLimit = 100,
    label: SeenLabels = [],  # noqa: B006
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Show all statements about an entity in order of time, with the periods in which they held.

    Example: `waylore timeline Oslo --user mara`
    """
    with open_without_models(store, collection) as memory:
        where = build_filter(label, ())
        found = memory.timeline(entity, since=since, until=until, limit=limit, where=where, user=user)
        print_result(found.to_dict(), views.render_timeline(found), as_json)


def _read_files(paths: list[str], format_: str, day_first: bool | None) -> Iterator[Conversation | Skipped]:
    for path in paths:
        if path == "-":
            raise ConfigError("- reads standard input; leave out the files")
        yield from read_conversations(Path(path), format_, day_first=day_first)


def _remember_all(
    keep: Callable[..., RememberReport], found: Iterator[Conversation | Skipped], session: str, tools: bool
) -> tuple[RememberReport, list[Skipped]]:
    """Store conversations, each in the given session, or in its own."""
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
    secrets = shown.describe_secrets(report.left_out)
    return f"remembered: {shown.count(report.new, 'new turn')}{known}{cut}{facts}{secrets}"


# -- hooks ---------------------------------------------------------------------------------------------

hooks_app = typer.Typer(help="Let a coding agent recall and remember automatically.", no_args_is_help=True)
HookClient = Annotated[hooks.Name, typer.Option("--client", help="Client whose sessions are remembered.")]
IsLocal = Annotated[
    bool, typer.Option("--local", help="Use .claude/settings.local.json, which is not shared with others.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the settings without writing them.")]


@hooks_app.command("install")
def install_hooks(
    client: HookClient,
    user: UserName = "",
    max_tokens: Annotated[
        int, typer.Option(metavar="N", min=100, help="Length of the recalled text, in tokens.")
    ] = 1_000,
    local: IsLocal = False,
    dry_run: DryRun = False,
    store: StoreUrl = "",
    collection: CollectionName = "",
    as_json: AsJson = False,
) -> None:
    """Write hooks into the settings of this project: recall when a session starts, and remember it when it ends.

    Other hooks stay as they are.

    Example: `waylore hooks install --client claude-code`
    """
    with report_errors():
        if not dry_run:
            set_up_if_unset(store, collection)
        given = {"--user": user, "--store": store, "--collection": collection}
        options = [part for name, value in given.items() if value for part in (name, value)]
        command = hooks.make_command(clients.make_python_command(), client, ["--max-tokens", str(max_tokens), *options])
        _change_settings(
            hooks.find_settings(is_local=local), partial(hooks.add_hooks, command=command), dry_run, as_json
        )


@hooks_app.command("uninstall")
def uninstall_hooks(
    client: HookClient,  # noqa: ARG001 (there is one client so far)
    local: IsLocal = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove the hooks of Waylore from the settings of this project. Other hooks stay as they are.

    Example: `waylore hooks uninstall --client claude-code`
    """
    with report_errors():
        _change_settings(hooks.find_settings(is_local=local), hooks.remove_hooks, dry_run, as_json)


def _change_settings(
    file: Path, change: Callable[[dict[str, Any]], dict[str, Any]], dry_run: bool, as_json: bool
) -> None:
    """Write settings if they changed; delete the file if the settings are empty."""
    before = clients.read(file)
    after = change(before)
    is_changed = after != before
    if is_changed and not dry_run:
        if after:
            clients.write(file, after)
        else:
            file.unlink()
    done = "would write" if dry_run else "wrote"
    shown_text = json.dumps(after, indent=2, ensure_ascii=False) if dry_run else ""
    people = "\n".join(filter(None, (shown_text, f"{done} {file}" if is_changed else f"{file} is unchanged")))
    print_result({"file": str(file), "changed": is_changed, "dry_run": dry_run, "settings": after}, people, as_json)


@hooks_app.command("run", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def run_hook(
    client: HookClient,
    user: UserName = "",
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Length of the recalled text, in tokens.")] = 1_000,
    store: StoreUrl = "",
    collection: CollectionName = "",
) -> None:
    """Answer an event of a session, which is read as JSON from standard input. Clients call this command.

    It never fails, so that it does not disturb the session: errors are printed on standard error.
    """
    try:
        hook = session_hooks.read_hook(sys.stdin.read(), client, user)
        if text := _answer(hook, max_tokens, store, collection):
            answer = {"hookEventName": hook.event, "additionalContext": text}
            typer.echo(json.dumps({"hookSpecificOutput": answer}, ensure_ascii=False))
    except typer.Exit:  # the error is printed
        pass
    except Exception as error:  # noqa: BLE001
        typer.echo(f"waylore: {error}", err=True)


def _answer(hook: session_hooks.SessionHook, max_tokens: int, store: str, collection: str) -> str:
    """Handle an event, and return the text for the model."""
    if hook.event == session_hooks.START:
        with open_without_models(store, collection) as memory:
            return session_hooks.recall_latest(memory, hook, max_tokens)
    if hook.is_first_prompt:
        with open_for_search(store, collection, "") as memory:
            return session_hooks.recall_for_prompt(memory, hook, max_tokens)
    if hook.event == session_hooks.END:
        with open_for_writing(store, collection) as memory:
            typer.echo(f"waylore: {_summarise(session_hooks.remember_session(memory, hook))}", err=True)
    return ""
