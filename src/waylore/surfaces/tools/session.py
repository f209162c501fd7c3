"""Answer the hooks of a coding agent: recall when a session starts and at its first prompt, remember it when it ends.

The event is JSON, as Claude Code writes it. The recalled text is for a model, within a budget of tokens and between the
marks of a fence.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from waylore.dates import format_day
from waylore.engine.waylore import Waylore
from waylore.fence import RECALLED_NOTE
from waylore.indexing.conversations.claude import is_transcript_line
from waylore.lengths import MAX_QUERY
from waylore.retrieval.context.render import count_hits
from waylore.text import estimate_tokens
from waylore.types.knowledge import Document
from waylore.types.messages import Conversation
from waylore.types.results import RememberReport
from waylore.types.search import Filter

START, PROMPT, END = "SessionStart", "UserPromptSubmit", "SessionEnd"
RECENT_DAYS = (7, 30, 365)  # the first of these periods with turns is used
RECENT_TURNS = 40
PROFILE_SHARE = 3  # a third of the budget is for current facts about the user
LISTED_DOCUMENTS = 5_000
MAX_LINES = 200  # lines of a transcript that are read to find out whether the assistant has answered


@dataclass(frozen=True, slots=True)
class SessionHook:
    """An event of a session, with the user whose memory it concerns."""

    event: str
    session: str
    agent: str
    user: str = ""
    prompt: str = ""
    transcript: Path | None = None

    @property
    def is_first_prompt(self) -> bool:
        """True if the assistant has not answered in this session yet: nothing was recalled for a prompt."""
        return self.event == PROMPT and bool(self.prompt.strip()) and not _has_answer(self.transcript)


def read_hook(text: str, agent: str, user: str) -> SessionHook:
    """Return the event that a client writes to standard input."""
    fields = json.loads(text)
    if not isinstance(fields, Mapping):
        raise ValueError("the event of a hook must be a JSON object")
    path = _get(fields, "transcript_path")
    return SessionHook(
        event=_get(fields, "hook_event_name"),
        session=_get(fields, "session_id"),
        agent=agent,
        user=user,
        prompt=_get(fields, "prompt"),
        transcript=Path(path).expanduser() if path else None,
    )


def recall_for_prompt(memory: Waylore, hook: SessionHook, max_tokens: int) -> str:
    """Return passages about a prompt; an empty string if there are none or they are likely irrelevant."""
    result = memory.search(hook.prompt[:MAX_QUERY], user=hook.user, top_k=count_hits(max_tokens))
    if not result.hits or result.is_relevant is False:
        return ""
    return memory.context(result, max_tokens=max_tokens).text


def recall_latest(memory: Waylore, hook: SessionHook, max_tokens: int) -> str:
    """Return current facts about the user, and the last turns of earlier sessions, oldest first, within the budget."""
    known = memory.profile(hook.user, budget=max(max_tokens // PROFILE_SHARE, 1)).text
    latest = _list_latest(memory, hook, max_tokens - estimate_tokens(known + RECALLED_NOTE) - 30)
    parts = [f"What holds now:\n{known}" if known else "", f"Earlier sessions:\n{latest}" if latest else ""]
    text = "\n\n".join(filter(None, parts))
    return f"From memory. {RECALLED_NOTE}\n{memory.make_fence(text).enclose(text)}" if text else ""


def _list_latest(memory: Waylore, hook: SessionHook, tokens: int) -> str:
    """Return as many of the last turns of earlier sessions as fit into a number of tokens, as lines."""
    lines = list[str]()
    for document in _list_recent(memory, hook):
        passage = memory.get(document.id, user=document.user).passages[0]
        line = f"{format_day(document.at or document.recorded_at)}, {passage.speaker}: {passage.text}"
        tokens -= estimate_tokens(line) + 1
        if tokens < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def remember_session(memory: Waylore, hook: SessionHook) -> RememberReport:
    """Store the transcript of a session. Turns that are already stored change nothing."""
    from waylore.indexing.conversations.dispatch import read_conversations  # noqa: PLC0415 (only at the end)

    report = RememberReport()
    for each in read_conversations(hook.transcript, hook.agent) if hook.transcript else ():
        if isinstance(each, Conversation) and any(not message.is_tool for message in each.messages):
            session = hook.session or each.id
            report += memory.remember(each.messages, user=hook.user, agent=hook.agent, session=session)
    return report


def _list_recent(memory: Waylore, hook: SessionHook) -> list[Document]:
    """Return the turns of the agent's other sessions, latest first."""
    for days in RECENT_DAYS:
        where = Filter(agent=hook.agent, since=memory.now() - timedelta(days=days))
        listed = memory.documents(where=where, user=hook.user, limit=LISTED_DOCUMENTS)
        found = [each for each in listed if each.at and each.user == hook.user and each.session != hook.session]
        if found:
            return sorted(found, key=lambda each: (each.at, each.id), reverse=True)[:RECENT_TURNS]
    return []


def _has_answer(transcript: Path | None) -> bool:
    if transcript is None or not transcript.is_file():
        return False
    with transcript.open(encoding="utf-8", errors="replace") as lines:
        return any('"assistant"' in line and _is_answer(line) for line in islice(lines, MAX_LINES))


def _is_answer(line: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return is_transcript_line(value) and value["type"] == "assistant"


def _get(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
