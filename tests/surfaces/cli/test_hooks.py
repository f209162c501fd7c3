"""Test `waylore hooks`: a program plays Claude Code and runs the hooks of its settings, over two sessions."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tools.waiting import HANG_SECONDS

from surfaces.commands import environment, process, run, run_json

YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).date()
SETTINGS = Path(".claude/settings.json")
OTHER = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo other"}]}
INSTALL = ("hooks", "install", "--client", "claude-code")
UNINSTALL = ("hooks", "uninstall", "--client", "claude-code")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run("init", "--embedder", "none")
    return tmp_path


def read_settings() -> Any:
    return json.loads(SETTINGS.read_text("utf-8"))


def write_settings(content: Any) -> None:
    SETTINGS.parent.mkdir(exist_ok=True)
    SETTINGS.write_text(json.dumps(content), "utf-8")


class Client:
    """Claude Code, as far as hooks are concerned: it writes a transcript and runs the hooks of the settings."""

    def __init__(self, folder: Path, session: str) -> None:
        self.folder, self.session = folder, session
        self.transcript = folder / f"{session}.jsonl"

    def say(self, kind: str, content: Any, **fields: Any) -> None:
        number = len(self.transcript.read_text().splitlines()) if self.transcript.exists() else 0
        line = {
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": f"{self.session}-{number}",
            "timestamp": f"{YESTERDAY}T10:00:{number:02}.000Z",
            "sessionId": self.session,
            **fields,
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def fire(self, event: str, **fields: str) -> subprocess.CompletedProcess[str]:
        """Run all hooks of an event."""
        base = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.folder)}
        [group] = read_settings()["hooks"][event]
        [hook] = group["hooks"]
        return subprocess.run(
            hook["command"],
            shell=True,
            cwd=self.folder,
            env=environment(),
            input=json.dumps({**base, "hook_event_name": event, **fields}),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )

    def recall(self, event: str, **fields: str) -> str:
        """Return what the hooks of an event add to the context of the model."""
        done = self.fire(event, **fields)
        assert (done.returncode, done.stderr) == (0, "")
        if not done.stdout:
            return ""
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert answer["hookEventName"] == event
        return str(answer["additionalContext"])


def test_second_session_recalls_the_first(folder: Path) -> None:
    run(*INSTALL, "--user", "mara")
    first = Client(folder, "one")
    assert first.recall("SessionStart", source="startup") == ""
    assert first.recall("UserPromptSubmit", prompt="We deploy with Fly.io from now on.") == ""
    first.say("user", "We deploy with Fly.io from now on. <system-reminder>Be brief.</system-reminder>")
    first.say("assistant", [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I noted Fly.io."}])
    first.say("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "fly deploy"}}])
    first.say("user", [{"type": "tool_result", "tool_use_id": "t", "content": "deployed"}])
    first.say("user", "Subagent at work.", isSidechain=True)
    first.say("user", "<command-name>/clear</command-name>")
    ended = first.fire("SessionEnd", reason="exit")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "2 new turns" in ended.stderr
    assert "2 known already" in first.fire("SessionEnd", reason="exit").stderr

    second = Client(folder, "two")
    start = second.recall("SessionStart", source="startup")
    said = f"{YESTERDAY}, mara: We deploy with Fly.io from now on.\n{YESTERDAY}, claude-code: I noted Fly.io."
    assert said in start
    assert "<<recalled" in start
    prompt = second.recall("UserPromptSubmit", prompt="How do we deploy?")
    assert "We deploy with Fly.io from now on." in prompt
    second.say("user", "How do we deploy?")
    second.say("assistant", [{"type": "text", "text": "With Fly.io."}])
    assert second.recall("UserPromptSubmit", prompt="How do we deploy?") == ""
    assert run_json("search", "deploy")["hits"] == []
    found = run_json("search", "deploy", "--user", "mara", "--session", "one")["hits"]
    assert {hit["document"]["agent"] for hit in found} == {"claude-code"}


def test_session_starts_with_what_holds_of_the_user(folder: Path) -> None:
    run(*INSTALL, "--user", "mara")
    first = Client(folder, "one")
    first.say("user", "I live in Oslo. My editor is Helix.")
    first.say("user", "We have moved to Bergen.")
    first.fire("SessionEnd")
    start = Client(folder, "two").recall("SessionStart")
    holding = start[start.index("What holds now:") : start.index("Earlier sessions:")]
    assert [relation in holding for relation in ("lives in: Bergen", "editor: Helix", "lives in: Oslo")] == [
        True,
        True,
        False,
    ]


def test_what_is_recalled_fits_the_budget(folder: Path) -> None:
    run(*INSTALL, "--max-tokens", "200")
    first = Client(folder, "one")
    for number in range(60):
        first.say("user", f"Decision {number}: the harbour office keeps its paper forms for another year.")
    first.fire("SessionEnd")
    text = Client(folder, "two").recall("SessionStart")
    assert "Decision 59" in text
    assert "Decision 30:" not in text
    assert len(text) < 200 * 6


def test_hooks_never_fail_a_session(folder: Path) -> None:
    run(*INSTALL)
    client = Client(folder, "one")
    (folder / "memory.waylore").unlink()
    done = client.fire("SessionStart")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no store" in done.stderr
    (folder / "memory.waylore").write_bytes(b"not a store at all" * 100)
    for event in ("SessionStart", "UserPromptSubmit", "SessionEnd"):
        client.say("user", "Hello.")
        done = client.fire(event, prompt="Hello?")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("waylore: ")
    for text in ("", "no JSON", "[]"):
        assert run("hooks", "run", "--client", "claude-code", stdin=text) == ""
    assert run("hooks", "run", "--client", "claude-code", "--new-option", "x", stdin="{}") == ""


def test_end_without_a_transcript_remembers_nothing(folder: Path) -> None:
    run(*INSTALL)
    done = Client(folder, "one").fire("SessionEnd")
    assert done.returncode == 0
    assert run_json("stats")["documents"] == 0


def test_install_keeps_other_settings_and_uninstall_restores_them() -> None:
    before = {"model": "opus", "hooks": {"PreToolUse": [OTHER], "SessionStart": [OTHER], "Stop": []}}
    write_settings(before)
    assert "wrote" in run(*INSTALL)
    made = read_settings()
    assert made["model"] == "opus"
    assert made["hooks"]["PreToolUse"] == [OTHER]
    assert made["hooks"]["SessionStart"][0] == OTHER
    assert made["hooks"]["SessionStart"][1]["matcher"] == "startup|clear"
    assert set(made["hooks"]) == {"PreToolUse", "SessionStart", "Stop", "UserPromptSubmit", "SessionEnd"}
    assert "wrote" in run(*UNINSTALL)
    assert read_settings() == before
    assert "unchanged" in run(*UNINSTALL)


def test_install_again_changes_nothing_but_its_options() -> None:
    run(*INSTALL, "--user", "mara")
    first = SETTINGS.read_bytes()
    assert "unchanged" in run(*INSTALL, "--user", "mara")
    assert SETTINGS.read_bytes() == first
    content = read_settings()
    content["hooks"]["SessionEnd"].append(OTHER)
    write_settings(content)
    assert run_json(*INSTALL, "--user", "ben", "--max-tokens", "500")["changed"]
    ours, other = read_settings()["hooks"]["SessionEnd"]
    assert other == OTHER
    assert ours["hooks"][0]["command"].endswith("--max-tokens 500 --user ben")
    content["hooks"]["SessionEnd"][0]["hooks"].append({"type": "command", "command": "echo mine"})
    write_settings(content)
    run(*UNINSTALL)
    left = read_settings()["hooks"]
    assert left == {"SessionEnd": [{"hooks": [{"type": "command", "command": "echo mine"}]}, OTHER]}


def test_file_of_our_hooks_alone_is_removed() -> None:
    run(*INSTALL)
    run(*UNINSTALL)
    assert not SETTINGS.exists()


def test_dry_run_writes_nothing() -> None:
    shown = run(*INSTALL, "--dry-run")
    assert "SessionEnd" in shown
    assert "would write" in shown
    planned = run_json(*INSTALL, "--dry-run")
    assert (planned["dry_run"], planned["changed"]) == (True, True)
    assert not SETTINGS.exists()
    run(*INSTALL)
    assert read_settings() == planned["settings"]
    assert "SessionEnd" not in run_json(*UNINSTALL, "--dry-run")["settings"].get("hooks", {})
    assert read_settings() == planned["settings"]


def test_local_settings_are_a_file_of_their_own() -> None:
    run(*INSTALL, "--local")
    assert not SETTINGS.exists()
    assert Path(".claude/settings.local.json").exists()
    run(*UNINSTALL, "--local")
    assert not Path(".claude/settings.local.json").exists()


@pytest.mark.parametrize("content", ["[1]", "{", '{"hooks": []}', '{"hooks": {"SessionEnd": {}}}'])
def test_settings_of_another_shape_are_refused(content: str) -> None:
    SETTINGS.parent.mkdir()
    SETTINGS.write_text(content)
    run(*INSTALL, code=2)
    assert SETTINGS.read_text() == content


def test_other_clients_are_refused(folder: Path) -> None:
    done = process(folder, "hooks", "install", "--client", "emacs")
    assert done.returncode == 2
    assert "claude-code" in done.stderr
