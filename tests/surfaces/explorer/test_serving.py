"""Test how the page is served: its headers, what `/` says without a build, and the ticket of `waylore explore`."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tools.waiting import HANG_SECONDS, wait_until

from surfaces.commands import COMMAND, environment, process
from surfaces.serving import create_client, make_settings, start_app
from waylore import Waylore
from waylore.surfaces.explorer.assets import add_explorer


def serve_folder(folder: Path) -> TestClient:
    app = Starlette()
    add_explorer(app, folder)
    return TestClient(app)


def write_page(folder: Path) -> Path:
    (folder / "assets").mkdir()
    (folder / "index.html").write_text("<!doctype html><title>A page</title>" + "<p>text</p>" * 100)
    (folder / "assets" / "index-1a2b.js").write_text("let one = 1;\n" * 100)
    return folder


# -- files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_page_and_its_files_are_served_with_a_strict_policy(tmp_path: Path, encoding: str) -> None:
    client = serve_folder(write_page(tmp_path))
    page = client.get("/", headers={"Accept-Encoding": encoding})
    script = client.get("/assets/index-1a2b.js", headers={"Accept-Encoding": encoding})
    assert page.text == (tmp_path / "index.html").read_text()
    assert script.text == (tmp_path / "assets" / "index-1a2b.js").read_text()
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    for response in (page, script):
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers.get("content-encoding", "identity") == encoding


@pytest.mark.parametrize("name", ["missing.js", "../index.html", "..%2findex.html", "%2e%2e%2f__init__.py"])
def test_other_files_are_not_served(tmp_path: Path, name: str) -> None:
    assert serve_folder(write_page(tmp_path)).get(f"/assets/{name}").status_code == 404


def test_installation_without_the_page_says_how_to_build_it(tmp_path: Path) -> None:
    page = serve_folder(tmp_path / "absent").get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<code>just explorer</code>" in page.text


async def test_service_shows_the_page_without_a_key(tmp_path: Path) -> None:
    async with start_app(make_settings(tmp_path / "a.waylore")) as app, create_client(app) as anyone:
        page = await anyone.get("/")
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert (await anyone.get("/v1/collections")).status_code == 401


async def test_link_on_another_site_opens_the_page_and_nothing_else(tmp_path: Path) -> None:
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    settings = make_settings(tmp_path / "a.waylore", http={"auth": False})
    async with start_app(settings) as app, create_client(app) as anyone:
        assert (await anyone.get("/", headers=linked)).status_code == 200
        assert (await anyone.get("/", headers={**linked, "Host": "evil.example"})).status_code == 403
        assert (await anyone.get("/v1/collections", headers=linked)).status_code == 403


# -- waylore explore -----------------------------------------------------------------------------------


@contextmanager
def explore(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run `waylore explore` without a browser; yield its process, its address and its ticket."""
    log = folder / "explore.log"
    command = [*COMMAND, "explore", *arguments, "--no-open"]
    with (
        log.open("w") as to,
        subprocess.Popen(command, cwd=folder, env=environment(), stderr=to, text=True) as running,
    ):

        def find_address() -> "re.Match[str] | None":
            assert running.poll() is None, log.read_text()
            return re.search(
                r"^explore at (http://127\.0\.0\.1:\d+)/#ticket=(\S+)&collection=default ", log.read_text()
            )

        try:
            found = wait_until(find_address)
            assert found is not None
            yield running, found[1], found[2]
        finally:
            running.kill()


def test_ticket_is_exchanged_once_for_a_key_and_ctrl_c_ends(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "notes.waylore") as memory:
        memory.add("The canteen serves soup.", uri="menu")
    octets = {"Content-Type": "application/octet-stream"}
    with explore(tmp_path, "notes.waylore") as (running, url, ticket):
        with httpx.Client(base_url=url, trust_env=False, timeout=HANG_SECONDS, headers=octets) as client:
            assert client.get("/v1/collections").status_code == 401
            assert client.post("/ticket", content="another").status_code == 403
            token = client.post("/ticket", content=ticket).raise_for_status().json()["token"]
            again = client.post("/ticket", content=ticket)
            assert (again.status_code, "opened before" in again.json()["detail"]) == (403, True)
            key = {"Authorization": f"Bearer {token}"}
            listed = client.get("/v1/collections/default/documents", headers=key).raise_for_status().json()
            assert [document["uri"] for document in listed["documents"]] == ["menu"]
            assert client.get("/v1/keys", headers=key).json()["keys"] == []  # the key is not stored
            foreign = client.post("/ticket", content=ticket, headers={"Origin": "https://evil.example"})
            assert "may not call this service" in foreign.json()["detail"]
        running.send_signal(signal.SIGINT)
        assert running.wait(HANG_SECONDS) == 0


async def test_service_has_no_ticket(tmp_path: Path) -> None:
    async with start_app(make_settings(tmp_path / "a.waylore")) as app, create_client(app) as anyone:
        sent = await anyone.post("/ticket", content="a", headers={"Content-Type": "application/octet-stream"})
        assert sent.status_code == 404


def test_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    done = process(tmp_path, "explore", "absent.waylore", "--no-open")
    assert (done.returncode, done.stderr[:30]) == (3, "waylore: no store at absent.wa")
    assert not (tmp_path / "absent.waylore").exists()
