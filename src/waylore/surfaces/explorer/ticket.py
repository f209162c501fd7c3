"""Let the page of `waylore explore` in: a ticket in its address is exchanged once for a key of this process.

The ticket follows a `#`, so that a browser sends it to no server by itself. The page exchanges it, removes it from
the address bar and keeps the key in the session of its tab. Whoever reads the address later, in the list of
processes or in the history of the browser, cannot use it again. The key is stored nowhere and ends with the process.
"""

import hmac
import secrets

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waylore.service.callers import ApiKeys
from waylore.service.keys import make_key

MAX_BYTES = 200  # of a request with a ticket


class Ticket:
    """A secret word that is exchanged for a key once."""

    def __init__(self) -> None:
        self.word = secrets.token_urlsafe(32)
        self._is_used = False

    def exchange(self, word: str, keys: ApiKeys) -> str:
        """Return the token of a new key for all collections. Raise HTTPException if the word is wrong or was used."""
        if not hmac.compare_digest(word.encode("utf-8", "replace"), self.word.encode()):
            raise HTTPException(403, "this is not the ticket of `waylore explore`; use the address that it printed")
        if self._is_used:
            raise HTTPException(403, "this address was opened before; end `waylore explore` and start it again")
        self._is_used = True
        key, token = make_key("explorer", scope="admin")
        keys.admit(key)
        return token


def add_ticket(app: Starlette) -> Ticket:
    """Add the route that exchanges a ticket to an application, and return the ticket."""
    ticket = Ticket()

    async def exchange_ticket(request: Request) -> Response:
        word = (await request.body())[:MAX_BYTES].decode("utf-8", "replace")
        return JSONResponse({"token": ticket.exchange(word, request.app.state.service.api_keys)})

    app.router.routes.append(Route("/ticket", exchange_ticket, methods=["POST"]))
    return ticket
