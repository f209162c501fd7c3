"""Test the page `/docs` in a real browser: it shows every operation, and no request leaves the machine."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tools.postgres.builds import MissingRequirement
from tools.waiting import wait_until

from surfaces.http.test_browser import OPTIONS, WAIT_SECONDS
from surfaces.serving import start_service

pytestmark = pytest.mark.timeout(600)
START = 'exec "$0" "$@" 3<&{commands} 4>&{replies}'  # the debugging pipe of a browser has the numbers 3 and 4
TEXT = "document.body?.innerText ?? ''"
PATHS = "[...document.querySelectorAll('.opblock-summary-path')].map(each => each.dataset.path)"
ENTER_KEY = "document.getElementById('key').value = {key}; document.getElementById('access').requestSubmit()"


class Page:
    """A page in a browser, and the events that the browser reports."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands = commands
        self._replies = os.fdopen(replies, "rb", closefd=False)
        self._number = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Log", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the browser and return its result."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": params, **session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (reply := self._read())["id"] != self._number:
            pass
        result: dict[str, Any] = reply["result"]
        return result

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def list_requests(self) -> list[str]:
        """Return the addresses of all requests until now."""
        sent = [each["params"] for each in self.events if each["method"] == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent]

    def list_violations(self) -> list[str]:
        """Return what the page tried although its policy forbids it."""
        logged = [each["params"]["entry"]["text"] for each in self.events if each["method"] == "Log.entryAdded"]
        return [text for text in logged if "Content Security Policy" in text or "integrity" in text]

    def _read(self) -> dict[str, Any]:
        """Read messages until one is a reply; remember the events before it."""
        while True:
            message = b""
            while not message.endswith(b"\0"):
                message += (byte := self._replies.read(1))
                assert byte, "the browser has ended"
            read: dict[str, Any] = json.loads(message[:-1])
            if "id" in read:
                return read
            self.events.append(read)


@contextmanager
def open_page(folder: Path) -> Iterator[Page]:
    """Start a browser with an empty page, and close it at the end."""
    browser = shutil.which("chromium")
    if browser is None:
        raise MissingRequirement("this test needs Chromium: apt-get install chromium")
    read_commands, commands = os.pipe()
    replies, write_replies = os.pipe()
    start = START.format(commands=read_commands, replies=write_replies)
    options = (*OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'browser'}")
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", start, browser, *options],
            stdout=log,
            stderr=log,
            pass_fds=(read_commands, write_replies),
        )
    try:
        os.close(read_commands)
        os.close(write_replies)
        yield Page(commands, replies)
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)
        os.close(commands)
        os.close(replies)


@pytest.mark.full
def test_page_asks_for_the_key_and_shows_every_operation(tmp_path: Path) -> None:
    if find_spec("fastapi_swagger") is None:
        raise MissingRequirement("this test needs the files of Swagger: pip install fastapi-swagger==0.4.64")
    with start_service(tmp_path / "memory.waylore", tmp_path) as service, open_page(tmp_path) as page:
        with service.client() as asked:
            paths = asked.get("/openapi.json").raise_for_status().json()["paths"]
        expected = sorted(path for path, methods in paths.items() for each in methods.values() for _ in each["tags"])
        page.call("Page.navigate", url=f"{service.url}/docs")
        wait_until(lambda: "Failed to load" in page.evaluate(TEXT), WAIT_SECONDS)
        assert page.evaluate(PATHS) == []
        page.evaluate(ENTER_KEY.format(key=json.dumps(service.token)))
        wait_until(lambda: len(page.evaluate(PATHS)) == len(expected), WAIT_SECONDS)
        assert sorted(page.evaluate(PATHS)) == expected
        requests = page.list_requests()
    assert len(requests) >= 6
    assert not [url for url in requests if not url.startswith((f"{service.url}/", "data:"))]
    assert not [url for url in requests if service.token in url]
    assert page.list_violations() == []
