"""Uploads over HTTP: what is taken and what is not, who may, and that the spool folder holds nothing long."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from databases import database
from surfaces.serving import asking, client, key, running, settings, told
from waylore.errors import ConfigError
from waylore.service.spool import OLD, Refused, Spool, open_spool, spooled
from waylore.settings.sections import Http

NOTE = b"# Login\n\nMara owns the login. The login needs Sessions.\n"
HERE = "/v1/collections/default"


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "memory.waylore") if request.param == "file" else database()


@pytest.fixture
async def asked(store: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(settings(store, http={"spool": tmp_path / "spool", "max_upload": 1_000_000})) as client:
        yield client


async def over(asked: httpx.AsyncClient, started: httpx.Response) -> dict[str, Any]:
    assert started.status_code == 202, started.text
    async with asyncio.timeout(30):
        while not (job := told(await asked.get(f"{HERE}/jobs/{started.json()['id']}")))["ended_at"]:
            await asyncio.sleep(0.05)
    return dict(job)


def left(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "spool").iterdir() if path.name != ".name"]


async def test_a_file_is_found_after_its_upload(asked: httpx.AsyncClient, tmp_path: Path) -> None:
    metadata = ["team=login", "year=2026", 'versions=["1.0", "2.0"]', "code=007", "is_old=false"]
    parameters = {"metadata": metadata, "labels": ["staff", "ops"]}
    done = await over(asked, await asked.put(f"{HERE}/uploads/docs/login.md", content=NOTE, params=parameters))
    assert (done["kind"], done["uri"], done["state"]) == ("add", "docs/login.md", "done")
    assert done["result"]["documents"] == 1
    [document] = told(await asked.get(f"{HERE}/documents"))["documents"]
    assert (document["uri"], document["title"]) == ("docs/login.md", "Login")
    assert document["labels"] == ["ops", "staff"]
    told_of = {"team": "login", "year": 2026, "versions": ["1.0", "2.0"], "code": "007", "is_old": False}
    assert document["metadata"] == told_of
    found = told(await asked.post(f"{HERE}/search", json={"query": "Who owns the login?"}))
    assert found["hits"][0]["document"]["uri"] == "docs/login.md"
    again = await over(asked, await asked.put(f"{HERE}/uploads/docs/login.md", content=NOTE, params=parameters))
    assert (again["result"]["unchanged"], again["result"]["documents"]) == (1, 0)
    assert left(tmp_path) == []


async def test_an_import_tells_its_refusals(asked: httpx.AsyncClient) -> None:
    rows = b"subject,predicate,object\nlogin,needs,sessions\nlogin,needs\n"
    done = await over(asked, await asked.post(f"{HERE}/uploads/graph.csv", content=rows))
    assert (done["result"]["format"], done["result"]["written"], done["result"]["refused"]) == ("triples", 1, 1)
    assert done["result"]["refusals"][0]["uri"] == "graph.csv#line=3"
    facts = told(await asked.get(f"{HERE}/facts", params={"entity": "login"}))["facts"]
    assert [fact["object"] for fact in facts] == ["sessions"]


async def test_a_file_is_read_as_its_suffix_says(asked: httpx.AsyncClient) -> None:
    address = f"{HERE}/uploads/https://example.org/login"
    done = await over(asked, await asked.put(address, content=NOTE, params={"suffix": ".md"}))
    assert done["uri"] == "https://example.org/login"
    [document] = told(await asked.get(f"{HERE}/documents"))["documents"]
    assert (document["uri"], document["title"]) == ("https://example.org/login", "Login")


@pytest.mark.parametrize(
    ("name", "content", "parameters", "status", "says"),
    [
        ("a.exe", b"MZ", {}, 415, "no reader for .exe"),
        ("a.md", b"", {}, 422, "nothing in it"),
        ("a.md", b"x" * 1_000_001, {}, 413, "1,000,000 bytes"),
        ("a.md", NOTE, {"metadata": "no pair"}, 422, "metadata"),
        ("a.md", NOTE, {"labels": "a\nb"}, 422, "labels"),
        ("a%23b.md", NOTE, {}, 422, "uri"),
    ],
)
async def test_what_is_not_taken_leaves_no_job_and_no_file(
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
    assert told(await asked.get(f"{HERE}/jobs"))["jobs"] == []
    assert left(tmp_path) == []


async def test_a_body_without_a_length_is_held_to_the_same_limit(
    asked: httpx.AsyncClient, tmp_path: Path
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x" * 10_000

    refused = await asked.put(f"{HERE}/uploads/a.md", content=endless())
    assert refused.status_code == 413
    assert refused.headers["connection"] == "close"
    assert left(tmp_path) == []


async def test_scopes_and_labels_hold_for_uploads_and_jobs(store: str, tmp_path: Path) -> None:
    of = settings(store, http={"spool": tmp_path / "spool"})
    async with running(of) as app:
        reader, writer = (client(app, key(store, scope=scope)) for scope in ("read", "write"))
        staff, board = (client(app, key(store, scope="write", labels=[label])) for label in ("staff", "board"))
        elsewhere = client(app, key(store, collections=["elsewhere"]))
        nobody = client(app)
        assert (await nobody.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 401
        assert (await elsewhere.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 404
        assert (await reader.put(f"{HERE}/uploads/a.md", content=NOTE)).status_code == 403
        assert (await writer.post(f"{HERE}/jobs", json={"kind": "forget"})).status_code == 403
        assert (await staff.put(f"{HERE}/uploads/a.md?labels=board", content=NOTE)).status_code == 403
        job = await over(staff, await staff.put(f"{HERE}/uploads/a.md?labels=staff", content=NOTE))
        place = f"{HERE}/jobs/{job['id']}"
        assert [j["id"] for j in told(await reader.get(f"{HERE}/jobs"))["jobs"]] == [job["id"]]
        assert told(await board.get(f"{HERE}/jobs"))["jobs"] == []
        assert (await board.get(place)).status_code == 404
        assert (await board.post(f"{place}/cancel")).status_code == 404
        assert (await board.get(f"{place}/events")).status_code == 404
        assert (await elsewhere.get(f"/v1/collections/elsewhere/jobs/{job['id']}")).status_code == 404
        assert (await reader.post(f"{place}/cancel")).status_code == 403
        assert told(await writer.post(f"{place}/cancel"))["state"] == "done"
        theirs = await over(board, await board.put(f"{HERE}/uploads/a.md?labels=board", content=b"Ours now."))
        assert theirs["state"] == "failed"
        assert "may not see" in theirs["problem"]
        for each in (reader, writer, staff, board, elsewhere, nobody):
            await each.aclose()


async def test_a_job_is_followed_to_its_end(asked: httpx.AsyncClient) -> None:
    started = await asked.put(f"{HERE}/uploads/a.md", content=NOTE)
    events = await asked.get(f"{HERE}/jobs/{started.json()['id']}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    told_of = [
        json.loads(line.removeprefix("data:")) for line in events.text.splitlines() if line.startswith("data:")
    ]
    assert told_of[-1]["state"] == "done"
    ids = [int(line.removeprefix("id:")) for line in events.text.splitlines() if line.startswith("id:")]
    assert ids == sorted(set(ids))
    rest = await asked.get(
        f"{HERE}/jobs/{started.json()['id']}/events", headers={"Last-Event-ID": str(ids[-1])}
    )
    assert "data:" not in rest.text


async def test_jobs_come_in_pages(asked: httpx.AsyncClient) -> None:
    started = [
        (await over(asked, await asked.put(f"{HERE}/uploads/{n}.md", content=NOTE)))["id"] for n in range(5)
    ]
    seen: list[str] = []
    parameters: dict[str, str | int] = {"limit": 2}
    while True:
        page = told(await asked.get(f"{HERE}/jobs", params=parameters))
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        parameters["cursor"] = page["next"]
    assert seen == started[::-1]


# -- the spool folder ----------------------------------------------------------------------------------


async def body(pieces: list[bytes], *, pause: float = 0.0) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(pause)
        yield piece


def spool_in(folder: Path, **limits: Any) -> tuple[Spool, Http]:
    http = Http(spool=folder, **limits)
    return open_spool(http), http


@given(pieces=st.lists(st.binary(max_size=50), max_size=20), declared=st.none() | st.integers(0, 400))
async def test_a_file_is_the_body_or_nothing_is_there(
    pieces: list[bytes], declared: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool, http = spool_in(folder, max_upload=300)
    whole = b"".join(pieces)
    refused = 0
    is_good = 0 < len(whole) <= 300 and declared in (None, len(whole))
    try:
        path, size = await spooled(
            spool, body(pieces), job="a" * 32, suffix=".md", declared=declared, http=http
        )
    except Refused as why:
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


async def test_a_body_that_stalls_or_trickles_is_given_up(tmp_path: Path) -> None:
    spool, http = spool_in(tmp_path, stall=0.2, pace=1_000)
    began = time.monotonic()
    with pytest.raises(Refused, match=r"nothing came for 0\.2 seconds"):
        await spooled(spool, body([b"x"], pause=5), job="a" * 32, suffix="", declared=None, http=http)
    with pytest.raises(Refused, match="less than 1000 bytes a second"):
        await spooled(spool, body([b"x"] * 999, pause=0.02), job="b" * 32, suffix="", declared=None, http=http)
    assert time.monotonic() - began < 5
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".name"]


async def test_a_cancelled_upload_leaves_nothing(tmp_path: Path) -> None:
    spool, http = spool_in(tmp_path)
    coming = body([b"x" * 2_000_000] * 50, pause=0.02)
    task = asyncio.create_task(spooled(spool, coming, job="a" * 32, suffix="", declared=None, http=http))
    await asyncio.sleep(0.2)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".name"]


def test_only_so_many_come_at_once(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path, uploads=1)
    with spool.places.one():
        assert spool.places.is_full
        with pytest.raises(Refused, match="try again"), spool.places.one():
            pass
    with spool.places.one():
        pass


def test_what_was_left_behind_goes_after_a_day(tmp_path: Path) -> None:
    spool, _ = spool_in(tmp_path)
    wanted, done = ("a" * 32 + "-" + "0" * 64 + ".md", "b" * 32 + "-" + "0" * 64 + ".md")
    for name in (wanted, done, "c" * 32 + ".part", "d" * 32 + ".part"):
        (tmp_path / name).write_text("x")
    long_ago = time.time() - OLD - 60
    for name in (wanted, done, "c" * 32 + ".part", ".name"):
        os.utime(tmp_path / name, (long_ago, long_ago))
    assert spool.sweep(lambda ids: frozenset(ids) & {"a" * 32}) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [".name", wanted, "d" * 32 + ".part"]


def test_all_who_see_a_folder_call_it_the_same(tmp_path: Path) -> None:
    names = {spool_in(tmp_path)[0].name for _ in range(5)}
    assert len(names) == 1
    assert spool_in(tmp_path / "other")[0].name not in names


def test_a_folder_that_cannot_be_used_says_which_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"http\.spool"):
        spool_in(tmp_path / "file" / "spool")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_a_disk_that_is_nearly_full_takes_nothing(small_disk: Path) -> None:
    spool, http = spool_in(small_disk)
    pieces = [b"x" * 100_000] * 100
    for declared in (None, 10_000_000):
        with pytest.raises(Refused, match="nearly full") as refused:
            await spooled(spool, body(pieces), job="a" * 32, suffix="", declared=declared, http=http)
        assert refused.value.status == 507
        assert sorted(small_disk.iterdir()) == [small_disk / ".name"]
