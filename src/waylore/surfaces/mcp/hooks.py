"""Write hooks into the settings of a client, and remove them again.

A hook is a command that the client runs at an event of a session, with the event as JSON on standard input. Hooks of
others are never changed. Writing the same hooks again changes nothing, and removing them restores the content.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from waylore.errors import ConfigError

Name = Literal["claude-code"]
RUN = ("hooks", "run", "--client")  # these arguments identify our own hooks


class HookEvent(NamedTuple):
    """An event of a session, with the time limit of its hook, and the kinds of the event for which it runs."""

    timeout_seconds: int
    matcher: str = ""


EVENTS = {
    "SessionStart": HookEvent(15, "startup|clear"),
    "UserPromptSubmit": HookEvent(15),
    "SessionEnd": HookEvent(60),
}


def find_settings(*, is_local: bool) -> Path:
    """Return the settings file of the project: the shared or the private one."""
    return Path(".claude") / ("settings.local.json" if is_local else "settings.json")


def make_command(start: Sequence[str], client: Name, options: Sequence[str]) -> str:
    """Return the command line of all hooks."""
    return shlex.join([*start, *RUN, client, *options])


def add_hooks(settings: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return the settings with our hooks; hooks of an earlier call are replaced in place."""
    events = _get_events(settings)
    added = {name: _add_hook(list(events.get(name, ())), event, command) for name, event in EVENTS.items()}
    return {**settings, "hooks": {**events, **added}}


def remove_hooks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without our hooks, and without lists that become empty."""
    cleared = {
        name: kept if isinstance(groups, list) and (kept := list(_drop_own(groups))) != groups else groups
        for name, groups in _get_events(settings).items()
    }
    before = settings.get("hooks", {})
    left = {name: groups for name, groups in cleared.items() if groups or not before[name]}
    others = {name: value for name, value in settings.items() if name != "hooks"}
    return {**others, "hooks": left} if left or not before else others


def _add_hook(groups: list[Any], event: HookEvent, command: str) -> list[Any]:
    hook = {"type": "command", "command": command, "timeout": event.timeout_seconds}
    if any(map(_is_own, _list_hooks(groups))):
        return [_change_own(group, lambda _: [hook]) for group in groups]
    return [*groups, {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}]


def _drop_own(groups: list[Any]) -> Iterator[Any]:
    """Yield the groups without our hooks; groups that become empty are left out."""
    for group in groups:
        kept = _change_own(group, lambda _: [])
        if kept == group or kept["hooks"]:
            yield kept


def _change_own(group: Any, change: Callable[[Any], list[Any]]) -> Any:
    """Return a group of hooks with our hooks replaced."""
    if not any(map(_is_own, _list_hooks([group]))):
        return group
    return {**group, "hooks": [new for hook in group["hooks"] for new in (change(hook) if _is_own(hook) else [hook])]}


def _list_hooks(groups: list[Any]) -> list[Any]:
    lists = (group.get("hooks") for group in groups if isinstance(group, dict))
    return [hook for hooks in lists if isinstance(hooks, list) for hook in hooks]


def _is_own(hook: Any) -> bool:
    return isinstance(hook, dict) and f" {' '.join(RUN)} " in str(hook.get("command"))


def _get_events(settings: Mapping[str, Any]) -> dict[str, Any]:
    events = settings.get("hooks", {})
    if not isinstance(events, dict) or not all(isinstance(events.get(name, []), list) for name in EVENTS):
        raise ConfigError("hooks in the settings of the client must be an object of lists; correct it first")
    return events
