"""Test uploads over HTTP: accepted and refused files, permissions, and the upload folder."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS

from databases import create_database
from surfaces.serving import create_client, create_token, make_settings, open_client, read_json, start_app
from waylore import Waylore
from waylore.errors import ConfigError
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.service.spool import ORPHAN_AGE_SECONDS, Spool, UploadRejected, open_spool, save_upload
from waylore.settings.sections import HttpSettings

NOTE = b"# Login\n\nMara owns the login. The login needs Sessions.\n"
HERE = "/v1/collections/default"
BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "memory.waylore") if request.param == "file" else create_database()


@pytest.fixture
async def asked(store: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(
        make_settings(store, http={"upload_dir": tmp_path / "spool", "max_upload_bytes": 1_000_000})
    ) as client:
        yield client


async def wait_for_job(asked: httpx.AsyncClient, started: httpx.Response) -> dict[str, Any]:
    assert started.status_code == 202, started.text
    async with asyncio.timeout(HANG_SECONDS):
        while not (job := read_json(await asked.get(f"{HERE}/jobs/{started.json()['id']}")))["ended_at"]:
            await asyncio.sleep(0.05)
    return dict(job)


def list_files(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "spool").iterdir() if path.name != ".name"]


async def test_removed_statements_of_an_upload_leave_no_bytes(tmp_path: Path) -> None:
    file = tmp_path / "memory.waylore"
    async with open_client(make_settings(str(file), http={"upload_dir": tmp_path / "spool"})) as asked:
        await wait_for_job(asked, await asked.put(f"{HERE}/uploads/docs/login.md", content=NOTE))
    with Waylore.open(file, embedder=HashingEmbedder(quiet=True)) as memory:
        [found] = memory.find_about("Mara")
        receipt = memory.remove_statements("Mara", documents=[found.document.id])
        assert memory.verify_forgotten(receipt) == ()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    stored = b"".join(path.read_bytes() for path in files)
    assert b"Sessions" in stored
    assert b"mara" not in stored.lower()


async def test_uploaded_file_can_be_searched(asked: httpx.AsyncClient, tmp_path: Path) -> None:
    metadata = ["team=login", "year=2026", 'versions=["1.0", "2.0"]', "code=007", "is_old=false"]
    parameters = {"metadata": metadata, "labels": ["staff", "ops"]}
    done = await wait_for_job(asked, await asked.put(f"{HERE}/uploads/docs/login.md", content=NOTE, params=parameters))
    assert (done["kind"], done["uri"], done["state"]) == ("add", "docs/login.md", "done")
    assert done["result"]["documents"] == 1
    [document] = read_json(await asked.get(f"{HERE}/documents"))["documents"]
    assert (document["uri"], document["title"]) == ("docs/login.md", "Login")
    assert document["labels"] == ["ops", "staff"]
    expected = {"team": "login", "year": 2026, "versions": ["1.0", "2.0"], "code": "007", "is_old": False}
    assert document["metadata"] == expected
    found = read_json(await asked.post(f"{HERE}/search", json={"query": "Who owns the login?"}))
    assert found["hits"][0]["document"]["uri"] == "docs/login.md"
    again = await wait_for_job(asked, await asked.put(f"{HERE}/uploads/docs/login.md", content=NOTE, params=parameters))
    assert (again["result"]["unchanged"], again["result"]["documents"]) == (1, 0)
    assert list_files(tmp_path) == []


async def test_import_reports_skipped_rows(asked: httpx.AsyncClient) -> None:
    rows = b"subject,predicate,object\nlogin,needs,sessions\nlogin,needs\n"
    done = await wait_for_job(asked, await asked.post(f"{HERE}/uploads/graph.csv", content=rows, headers=BYTES))
    assert (done["result"]["format"], done["result"]["written"], done["result"]["skipped_count"]) == ("triples", 1, 1)
    assert done["result"]["skipped"][0]["uri"] == "graph.csv#line=3"
    facts = read_json(await asked.get(f"{HERE}/facts", params={"entity": "login"}))["facts"]
    assert [fact["object"] for fact in facts] == ["sessions"]


async def test_import_with_a_long_suffix_is_done(asked: httpx.AsyncClient) -> None:
    row = b'{"subject": "login", "predicate": "needs", "object": "sessions", "text": "The login needs sessions."}\n'
    address = f"{HERE}/uploads/graph.{'x' * 300}"
    binary = {"Content-Type": "application/octet-stream"}
    done = await wait_for_job(asked, await asked.post(address, content=row, headers=binary))
    assert (done["state"], done["result"]["written"]) == ("done", 1)


async def test_form_is_refused_because_its_envelope_would_be_stored(asked: httpx.AsyncClient) -> None:
    """T12: `files=` of httpx and `-F` of curl send a form around the file."""
    refused = await asked.put(f"{HERE}/uploads/a.md", files={"file": ("a.md", NOTE)})
    assert (refused.status_code, "`curl -T FILE`" in refused.json()["detail"]) == (415, True)
    assert (await asked.post(f"{HERE}/uploads/a.md", files={"file": ("a.md", NOTE)})).status_code == 415
    assert read_json(await asked.get(f"{HERE}/jobs"))["jobs"] == []


async def test_suffix_parameter_selects_the_reader(asked: httpx.AsyncClient) -> None:
    address = f"{HERE}/uploads/https://example.org/login"
    done = await wait_for_job(asked, await asked.put(address, content=NOTE, params={"suffix": ".md"}))
    assert done["uri"] == "https://example.org/login"
    [document] = read_json(await asked.get(f"{HERE}/documents"))["documents"]
    assert (document["uri"], document["title"]) == ("https://example.org/login", "Login")


@pytest.mark.parametrize(
    ("name", "content", "parameters", "status", "says"),
    [
        ("a.exe", b"MZ", {}, 415, "no reader for .exe"),
        ("a.md", b"", {}, 422, "the upload is empty"),
        ("a.md", b"x" * 1_000_001, {}, 413, "1,000,000 bytes"),
        ("a.md", NOTE, {"metadata": "no pair"}, 422, "metadata"),
        ("a.md", NOTE, {"labels": "a\nb"}, 422, "labels"),
        ("a%23b.md", NOTE, {}, 422, "uri"),
    ],
)
async def test_refused_upload_leaves_no_job_and_no_file(
    asked: httpx.AsyncClient,
    tmp_path: Path,
    name: str,
    content: bytes,
    parameters: dict[str, str],
    status: int,
    says: str,
) -> None:
    refused = await asked.put(f"{HERE}/uploads/{name}", content=content, params=parameters)
    assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
    assert says in refused.json()["detail"]
    assert read_json(await asked.get(f"{HERE}/jobs"))["jobs"] == []
    assert list_files(tmp_path) == []


async def test_body_without_length_has_the_same_limit(asked: httpx.AsyncClient, tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 10_000

    refused = await asked.put(f"{HERE}/uploads/a.md", content=endless())
    assert refused.status_code == 413
    assert refused.headers["connection"] == "close"
    assert list_files(tmp_path) == []


async def test_scopes_and_labels_hold_for_uploads_and_jobs(store: str, tmp_path: Path) -> None:
    of = make_settings(store, http={"upload_dir": tmp_path / "spool"})
    async with start_app(of) as app:
        reader, writer = (create_client(app, create_token(store, scope=scope)) for scope in ("read", "write"))
        staff, board = (
            create_client(app, create_token(store, scope="write", labels=[label])) for label in ("staff", "board")
        )
        elsewhere = create_client(app, create_token(store, collections=["elsewhere"]))
        nobody = create_client(app)
        assert (await nobody.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 401
        assert (await elsewhere.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 404
        assert (await reader.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 403
        assert (await writer.post(f"{HERE}/jobs", json={"kind": "forget"})).status_code == 403
        assert (await staff.put(f"{HERE}/uploads/a.md?labels=board", content=NOTE)).status_code == 403
        job = await wait_for_job(staff, await staff.put(f"{HERE}/uploads/a.md?labels=staff", content=NOTE))
        place = f"{HERE}/jobs/{job['id']}"
        assert [j["id"] for j in read_json(await reader.get(f"{HERE}/jobs"))["jobs"]] == [job["id"]]
        assert read_json(await board.get(f"{HERE}/jobs"))["jobs"] == []
        assert (await board.get(place)).status_code == 404
        assert (await board.post(f"{place}/cancel")).status_code == 404
        assert (await board.get(f"{place}/events")).status_code == 404
        assert (await elsewhere.get(f"/v1/collections/elsewhere/jobs/{job['id']}")).status_code == 404
        assert (await reader.post(f"{place}/cancel")).status_code == 403
        assert read_json(await writer.post(f"{place}/cancel"))["state"] == "done"
        theirs = await wait_for_job(board, await board.put(f"{HERE}/uploads/a.md?labels=board", content=b"Ours now."))
        assert theirs["state"] == "failed"
        assert "choose another address" in theirs["problem"]
        for each in (reader, writer, staff, board, elsewhere, nobody):
            await each.aclose()


async def test_job_events_end_with_the_job(asked: httpx.AsyncClient) -> None:
    started = await asked.put(f"{HERE}/uploads/a.md", content=NOTE)
    events = await asked.get(f"{HERE}/jobs/{started.json()['id']}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    events_data = [
        json.loads(line.removeprefix("data:")) for line in events.text.splitlines() if line.startswith("data:")
    ]
    assert events_data[-1]["state"] == "done"
    ids = [int(line.removeprefix("id:")) for line in events.text.splitlines() if line.startswith("id:")]
    assert ids == sorted(set(ids))
    rest = await asked.get(f"{HERE}/jobs/{started.json()['id']}/events", headers={"Last-Event-ID": str(ids[-1])})
    assert "data:" not in rest.text


async def test_jobs_have_pages(asked: httpx.AsyncClient) -> None:
    started = [
        (await wait_for_job(asked, await asked.put(f"{HERE}/uploads/{n}.md", content=NOTE)))["id"] for n in range(5)
    ]
    seen: list[str] = []
    parameters: dict[str, str | int] = {"limit": 2}
    while True:
        page = read_json(await asked.get(f"{HERE}/jobs", params=parameters))
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        parameters["cursor"] = page["next"]
    assert seen == started[::-1]


# -- the spool folder ----------------------------------------------------------------------------------


async def send_pieces(pieces: list[bytes], *, pause: float = 0.0) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(pause)
        yield piece


def open_folder(folder: Path, **limits: Any) -> tuple[Spool, HttpSettings]:
    http = HttpSettings(upload_dir=folder, **limits)
    return open_spool(http), http


@given(pieces=st.lists(st.binary(max_size=50), max_size=20), declared=st.none() | st.integers(0, 400))
async def test_saved_upload_is_complete_or_absent(
    pieces: list[bytes], declared: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool, http = open_folder(folder, max_upload_bytes=300)
    whole = b"".join(pieces)
    refused = 0
    is_good = 0 < len(whole) <= 300 and declared in (None, len(whole))
    try:
        path, size = await save_upload(
            spool, send_pieces(pieces), job="a" * 32, suffix=".md", declared=declared, http=http
        )
    except UploadRejected as why:
        refused = why.status
    if refused:
        assert not is_good
        assert refused in (400, 413, 422)
        assert sorted(folder.iterdir()) == [folder / ".name"]
    else:
        assert is_good
        assert (path.read_bytes(), size) == (whole, len(whole))
        assert path.name.startswith("a" * 32 + "-")
        assert path.suffix == ".md"


async def test_slow_upload_is_rejected(tmp_path: Path) -> None:
    spool, http = open_folder(tmp_path, idle_timeout=0.2)
    coming = send_pieces([b"x"], pause=HANG_SECONDS)
    with pytest.raises(UploadRejected, match=r"no data for 0\.2 seconds"):
        await save_upload(spool, coming, job="a" * 32, suffix="", declared=None, http=http)
    _, http = open_folder(tmp_path, idle_timeout=2.0, min_upload_rate=1_000)  # a busy machine pauses for less
    coming = send_pieces([b"x"] * 999, pause=0.1)
    with pytest.raises(UploadRejected, match="slower than 1000 bytes per second"):
        await save_upload(spool, coming, job="b" * 32, suffix="", declared=None, http=http)
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".name"]


async def test_cancelled_upload_leaves_no_file(tmp_path: Path) -> None:
    spool, http = open_folder(tmp_path)
    is_written = asyncio.Event()

    async def send_endlessly() -> AsyncIterator[bytes]:
        yield b"x" * 2_000_000
        yield b"x" * 2_000_000  # is asked for when the first was written
        is_written.set()
        await asyncio.sleep(HANG_SECONDS)

    task = asyncio.create_task(save_upload(spool, send_endlessly(), job="a" * 32, suffix="", declared=None, http=http))
    await is_written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".name"]


def test_concurrent_uploads_are_limited(tmp_path: Path) -> None:
    spool, _ = open_folder(tmp_path, max_concurrent_uploads=1)
    with spool.slots.reserve("a"):
        assert spool.slots.is_full("a")
        with pytest.raises(UploadRejected, match="try again"), spool.slots.reserve("a"):
            pass
    with spool.slots.reserve("a"):
        pass


def test_one_caller_cannot_take_all_uploads(tmp_path: Path) -> None:
    slots = open_folder(tmp_path, max_concurrent_uploads=8)[0].slots
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(slots.reserve("a"))
        assert slots.is_full("a")
        for _ in range(2):
            stack.enter_context(slots.reserve("b"))
        assert slots.is_full("c")
    assert not slots.is_full("a")


@pytest.mark.parametrize("suffix", ["", ".md", ".JSONL", ".nt-v2", ".ü", ".json_lines", ".\n", "." + "x" * 300])
async def test_sweep_keeps_the_file_of_a_waiting_job(tmp_path: Path, suffix: str) -> None:
    http = HttpSettings(upload_dir=tmp_path / "spool")
    spool = open_spool(http)
    path, _ = await save_upload(spool, send_pieces([b"x"]), job="a" * 32, suffix=suffix, declared=1, http=http)
    os.utime(path, (0, 0))
    assert spool.sweep(lambda ids: frozenset(ids) & {"a" * 32}) == 0
    assert path.exists()
    assert spool.sweep(lambda _: frozenset()) == 1


def test_sweep_deletes_old_orphans(tmp_path: Path) -> None:
    spool, _ = open_folder(tmp_path)
    wanted, done = ("a" * 32 + "-" + "0" * 64 + ".md", "b" * 32 + "-" + "0" * 64 + ".md")
    for name in (wanted, done, "c" * 32 + ".part", "d" * 32 + ".part"):
        (tmp_path / name).write_text("x")
    long_ago = time.time() - ORPHAN_AGE_SECONDS - 60
    for name in (wanted, done, "c" * 32 + ".part", ".name"):
        os.utime(tmp_path / name, (long_ago, long_ago))
    assert spool.sweep(lambda ids: frozenset(ids) & {"a" * 32}) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".name", wanted, "d" * 32 + ".part"]


def test_spool_name_is_the_same_for_all_processes(tmp_path: Path) -> None:
    names = {open_folder(tmp_path)[0].name for _ in range(5)}
    assert len(names) == 1
    assert open_folder(tmp_path / "other")[0].name not in names


def test_unusable_folder_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"http\.upload_dir"):
        open_folder(tmp_path / "file" / "spool")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_nearly_full_disk_refuses_uploads(small_disk: Path) -> None:
    spool, http = open_folder(small_disk)
    pieces = [b"x" * 100_000] * 100
    for declared in (None, 10_000_000):
        with pytest.raises(UploadRejected, match="nearly full") as refused:
            await save_upload(spool, send_pieces(pieces), job="a" * 32, suffix="", declared=declared, http=http)
        assert refused.value.status == 507
        assert sorted(small_disk.iterdir()) == [small_disk / ".name"]
