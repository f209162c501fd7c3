"""Send requests to a Qdrant cluster, through any of its peers.

A request goes to the peer that answered last. If that peer does not answer, the next one is asked. After a search that
no peer answered, searches do not try again for `REST_SECONDS`, so that they do not all wait for a cluster that is down.
Requests are those of Qdrant's REST interface, without its own client: importing that takes seconds, because it defines
a class for each kind of request and loads fastembed if it is installed.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import httpx

from waylore.deadline import check_deadline, limit_wait
from waylore.store.qdrant.queries import IndexUnavailable, split_key, split_url

SEARCH_SECONDS = 3.0  # that a peer has for a search
WRITE_SECONDS = 10.0  # that a peer has for a change
REST_SECONDS = 5.0  # without searches, after one that no peer answered
HTTP_ERRORS, HTTP_SERVER_ERRORS = 400, 500


class Cluster:
    """A Qdrant cluster, given by the URLs of its peers, separated by commas.

    An API key is the password of a URL.
    """

    def __init__(self, url: str) -> None:
        self._peers = [_make_client(one) for one in split_url(url)]
        self._preferred = 0
        self._rests_until = 0.0
        self._reason = ""

    def search(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a search and return its result, unless no peer answered one a moment ago."""
        if time.monotonic() < self._rests_until:
            raise IndexUnavailable(self._reason)
        try:
            return self._send("POST", path, body, SEARCH_SECONDS)
        except IndexUnavailable as error:
            if not error.status:
                self._reason = str(error)
                self._rests_until = time.monotonic() + REST_SECONDS
            raise

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send another request and return its result. It may be sent twice, so it must be one that can be repeated."""
        answer = self._send(method, path, body, WRITE_SECONDS)
        self._rests_until = 0.0
        return answer

    def close(self) -> None:
        """Close every connection."""
        for peer in self._peers:
            peer.close()

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        failed = ""
        for number in self._list_peers():
            check_deadline()
            peer = self._peers[number]
            try:
                response = peer.request(method, path, json=body, timeout=limit_wait(seconds))
            except httpx.HTTPError as error:
                failed = f"{peer.base_url}: {str(error) or type(error).__name__}"
                continue
            if response.status_code >= HTTP_SERVER_ERRORS:
                failed = f"{peer.base_url}: {_read_error(response)}"
                continue
            self._preferred = number
            if response.status_code >= HTTP_ERRORS:  # another peer would say the same
                message = f"the search index refused a request ({_read_error(response)})"
                raise IndexUnavailable(message, response.status_code)
            return response.json()["result"]
        raise IndexUnavailable(f"no peer of the search index answers ({failed})")

    def _list_peers(self) -> Iterator[int]:
        first = self._preferred
        return ((first + step) % len(self._peers) for step in range(len(self._peers)))


def _make_client(url: str) -> httpx.Client:
    """Return a client that asks for plain answers: Qdrant sends the end of a compressed one 40 ms after the rest."""
    address, key = split_key(url)
    headers = {"accept-encoding": "identity"}
    return httpx.Client(base_url=address, headers={**headers, "api-key": unquote(key)} if key else headers)


def _read_error(response: httpx.Response) -> str:
    return f"status {response.status_code}, {response.text[:200]}"
