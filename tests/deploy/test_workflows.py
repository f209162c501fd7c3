"""The workflows of a public forge: actions are pinned to commits, recipes exist, and nothing is published."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPES = set(re.findall(r"^([\w-]+)[^\n:=]*:(?!=)", (ROOT / "justfile").read_text("utf-8"), re.MULTILINE))


def read_steps(path: Path) -> list[dict[str, Any]]:
    read = yaml.safe_load(path.read_text("utf-8"))
    return [step for job in read["jobs"].values() for step in job["steps"]]


def test_there_are_two() -> None:
    assert [path.name for path in PATHS] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_commits_whose_version_is_named(path: Path) -> None:
    lines = [line for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    assert len(lines) == len([step for step in read_steps(path) if "uses" in step])
    assert all(re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in lines)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_steps_run_recipes_that_exist(path: Path) -> None:
    asked = {step["run"].split()[1] for step in read_steps(path) if step.get("run", "").startswith("just ")}
    assert asked
    assert asked <= RECIPES


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_they_may_only_read(path: Path) -> None:
    read = yaml.safe_load(path.read_text("utf-8"))
    assert read["permissions"] == {"contents": "read"}
    assert not [job for job in read["jobs"].values() if "permissions" in job]
    assert "secrets." not in path.read_text("utf-8")


def test_ci_runs_every_check_of_ours() -> None:
    [checks] = re.findall(r"^check\(\) \{ (.*); \}$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    run = {step.get("run", "") for step in read_steps(PATHS[0])}
    assert set(checks.split(" && ")) <= run
