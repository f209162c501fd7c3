"""Serve the files of the built page from memory, with a strict policy for its scripts, at `/` of the HTTP service.

The page holds no knowledge: it calls the routes of the service with the key of its user. So it needs no key itself.
If it was not built, `/` says how to build it.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGE = Path(__file__).parent / "page"
INDEX = "index.html"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}  # names of these files have a hash of their content
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Waylore</title>
<h1>Waylore is running</h1>
<p>The explorer was not built in this installation, so there is no page to look at. In a checkout of the source, with
Node 20.19 or newer, run <code>just explorer</code> and start the service again. A wheel contains the page.</p>
<p>The API is at <code>/v1</code>, described by <code>/openapi.json</code>.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, as it is and compressed."""

    body: bytes
    compressed: bytes
    media_type: str

    def respond(self, request: Request, headers: Mapping[str, str] = {}) -> Response:
        """Return the response with the file, compressed if the client allows it."""
        sent, encoding = self.body, {}
        if "gzip" in request.headers.get("accept-encoding", ""):
            sent, encoding = self.compressed, {"Content-Encoding": "gzip"}
        return Response(sent, headers={**HEADERS, **headers, **encoding}, media_type=self.media_type)


def add_explorer(app: Starlette, folder: Path = PAGE) -> None:
    """Add the page to an application, at `/`, and its other files at `/assets`."""
    assets = read_page(folder)
    index = assets.get(INDEX) or _make_asset(INDEX, NOT_BUILT)

    async def show_page(request: Request) -> Response:
        return index.respond(request)

    async def get_asset(request: Request) -> Response:
        asset = assets.get(f"assets/{request.path_params['name']}")
        if asset is None:
            raise HTTPException(404)
        return asset.respond(request, KEPT)

    app.router.routes.append(Route("/", show_page))
    app.router.routes.append(Route("/assets/{name}", get_asset))


def read_page(folder: Path) -> dict[str, Asset]:
    """Return the files of a built page by their path in its folder; none if it was not built."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _make_asset(path.name, path.read_bytes()) for path in files}


def _make_asset(name: str, body: bytes) -> Asset:
    media_type = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
    return Asset(body, gzip.compress(body, mtime=0), media_type or "application/octet-stream")
