"""The service runs as its documented role, directly and through PgBouncer in transaction mode."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict
from tools.postgres.builds import Build
from tools.postgres.pgbouncer import find_debian_pgbouncer, find_new_pgbouncer, start_pgbouncer
from tools.postgres.server import Server

from databases import create_database, make_name
from surfaces.commands import process
from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore.cells.open import open_catalogue
from waylore.errors import ConfigError, Forbidden
from waylore.service.registry.open import open_registry
from waylore.store.urls import open_store
from waylore.surfaces.checks.store import check_store

DEPLOY = Path(__file__).parents[2] / "deploy"
ROLE = "waylore_test_service"
NOTES = "/v1/collections/default"
METHODS = ("vector", "keyword", "hybrid", "chain", "neighbourhood", "guided", "activation", "citations", "graph_only")


@pytest.fixture(scope="module")
def database(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create a database whose owner has run `waylore migrate`, and the role of the documentation."""
    url = create_database()
    done = process(tmp_path_factory.mktemp("migrate"), "migrate", "--store", url)
    assert (done.returncode, done.stdout) == (0, "up to date: store, registry, jobs\n"), done.stderr
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE ROLE {ROLE} LOGIN IN ROLE waylore_app")
    return url.rpartition("/")[2]


@pytest.fixture(params=["direct", find_debian_pgbouncer, find_new_pgbouncer], ids=["direct", "debian", "new"])
def url(request: pytest.FixtureRequest, postgres: Server, database: str) -> Iterator[str]:
    """Return an address of the database for the role of the service."""
    direct = postgres.build_url(database, user=ROLE)
    if request.param == "direct":
        yield direct
        return
    build: Build = request.param()
    with start_pgbouncer(build, postgres, [ROLE]) as port:
        yield direct.replace(f":{postgres.port}/", f":{port}/")


async def send_requests(client: httpx.AsyncClient, number: int) -> int:
    """Send at least one request to each route, and return how many were sent. Each must succeed."""
    count = 0

    async def send(method: str, path: str, **options: Any) -> Any:
        nonlocal count
        count += 1
        response = await client.request(method, path, **options)
        assert response.status_code < 300, response.text
        is_json = response.content and response.headers.get("content-type") == "application/json"
        return response.json() if is_json else response.text

    text = {"text": f"Mara {number} owns the login {number}.", "uri": f"{number}.md", "title": f"Note {number}"}
    added = await send("POST", f"{NOTES}/documents", json={**text, "facts": [fact(f"Mara {number}")]})
    for method in METHODS:
        asked = {"query": f"Who owns the login {number}?", "method": method}
        found = await send("POST", f"{NOTES}/search", json=asked)
        assert found["hits"] or method == "citations"
    await send("POST", f"{NOTES}/context", json={"query": "login"})
    passage = (await send("POST", f"{NOTES}/search", json={"query": "login"}))["hits"][0]["passage"]["id"]
    await send("POST", f"{NOTES}/explain", json={"query": "login", "passage": passage})
    for path in ("related", "facts"):
        await send("GET", f"{NOTES}/{path}", params={"entity": f"Mara {number}"})
    await send("POST", f"{NOTES}/facts", json={"facts": [fact("Otto")]})
    for path in ("stats", "documents", "export", "jobs", f"documents/{added['id']}", ""):
        await send("GET", f"{NOTES}/{path}".rstrip("/"))
    await send("GET", "/v1/collections")
    job = await send("PUT", f"{NOTES}/uploads/up{number}.md", content=b"Otto reads.")
    rows = b'{"subject": "a", "predicate": "is", "object": "b", "text": "A is B."}\n'
    binary = {"Content-Type": "application/octet-stream"}
    await send("POST", f"{NOTES}/uploads/t{number}.jsonl", content=rows, headers=binary)
    for each in await send("GET", f"{NOTES}/jobs/{job['id']}"), job:
        await send("GET", f"{NOTES}/jobs/{each['id']}/events")
    other = await send("PUT", f"/v1/collections/other{number}", json={"description": "Another."})
    emptying = await send("POST", f"/v1/collections/{other['name']}/jobs", json={"kind": "forget"})
    await send("POST", f"/v1/collections/{other['name']}/jobs/{emptying['id']}/cancel")
    await send("DELETE", f"/v1/collections/{other['name']}")
    key = await send("POST", "/v1/keys", json={"name": "a", "scope": "read", "collections": ["default"]})
    await send("GET", "/v1/keys")
    await send("POST", f"/v1/keys/{key['info']['id']}/rotate", json={})
    await send("DELETE", f"/v1/keys/{key['info']['id']}")
    receipt = await send("POST", f"{NOTES}/documents/forget", json={"documents": [added["id"]]})
    await send("POST", f"{NOTES}/receipts/verify", json=receipt)
    again = await send("POST", f"{NOTES}/documents", json=text, headers={"Idempotency-Key": f"add-{number}"})
    await send("DELETE", f"{NOTES}/documents/{again['id']}")
    await send("GET", "/healthz")
    while (await client.get("/readyz")).status_code != 200:
        await asyncio.sleep(0.1)  # on a busy machine a probe may take longer than its limit
    return count + 1


def fact(subject: str) -> dict[str, str]:
    return {"subject": subject, "predicate": "owns", "object": "login"}


async def test_every_request_passes_as_the_role_of_the_service(url: str, tmp_path: Path) -> None:
    """Six rounds at once, so that statements of different requests meet on the connections of the pooler."""
    settings = make_settings(url, http={"upload_dir": tmp_path})
    async with start_app(settings) as app, create_client(app, create_token(url)) as client:
        counts = [await asyncio.gather(*(send_requests(client, 3 * round_ + n) for n in range(3))) for round_ in (0, 1)]
    assert min(min(each) for each in counts) >= 38


def test_role_of_the_service_changes_no_tables(postgres: Server, database: str) -> None:
    with psycopg.connect(postgres.build_url(database, user=ROLE), autocommit=True) as db:
        for schema in ("waylore", "waylore_service", "waylore_jobs"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"CREATE TABLE {schema}.mine (id int)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"DELETE FROM {schema}.migrations")
        for change in ("UPDATE waylore_service.audit SET author = 'other'", "DELETE FROM waylore_service.audit"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(change)


def test_role_without_tables_is_told_to_migrate(postgres: Server, database: str) -> None:
    empty = create_database().rpartition("/")[2]
    with pytest.raises(Forbidden, match="waylore migrate"):
        open_registry(postgres.build_url(empty, user=ROLE))


def test_pooler_is_noticed_and_sessions_are_refused(postgres: Server, database: str) -> None:
    with start_pgbouncer(find_debian_pgbouncer(), postgres, ["postgres"]) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/{database}"
        assert any("pooler" in finding.message for finding in check_store(url))
        with closing(open_store(url, make_name("pooled"))) as store, pytest.raises(ConfigError, match="pooler"):
            store.compact()
        with (
            closing(open_catalogue(f"cells+{url}")) as catalogue,
            pytest.raises(ConfigError, match="pooler"),
            catalogue.lock_moves(),
        ):
            pass
    assert not any("pooler" in finding.message for finding in check_store(postgres.build_url(database)))


def test_compose_runs_the_service_as_a_role_that_is_no_owner(postgres: Server, tmp_path: Path) -> None:
    """The script creates the login that the documented secret of the service names."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    page = (DEPLOY.parent / "docs" / "how-to" / "docker.md").read_text("utf-8")
    [secret] = re.findall(r'"(\S+)" > deploy/secrets/waylore_store', page)
    assert compose["services"]["waylore"]["secrets"] == ["waylore_store"]
    assert compose["services"]["migrate"]["secrets"] == [{"source": "waylore_owner", "target": "waylore_store"}]
    login = conninfo_to_dict(secret.replace("$service", "x"))["user"]
    assert login != compose["services"]["postgres"]["environment"]["POSTGRES_USER"]
    (tmp_path / "password").write_text("secret")
    with postgres.create_database() as url, psycopg.connect(url, autocommit=True) as db:
        environment = {
            **os.environ,
            "SERVICE_PASSWORD_FILE": str(tmp_path / "password"),
            "POSTGRES_USER": "postgres",
            "POSTGRES_DB": url.rpartition("/")[2],
            "PGHOST": "127.0.0.1",
            "PGPORT": str(postgres.port),
        }
        subprocess.run(["sh", str(DEPLOY / "postgres" / "roles.sh")], env=environment, check=True)
        member = "pg_has_role(rolname, 'waylore_app', 'MEMBER')"
        role = f"SELECT rolsuper, rolcreaterole, {member} FROM pg_roles WHERE rolname = %s"
        assert db.execute(role, [login]).fetchone() == (False, False, True)
        db.execute(f"DROP ROLE {login}")
