"""Cursors: where a page of a list ended, as a text that callers hand back and cannot make themselves.

A cursor names the last item that was shown, so what is written between two pages moves nothing: each item that
was there all the while is shown once. It is signed, for the collection and the list it belongs to.
"""

import base64
import binascii
import hmac
import json
from hashlib import sha256

from waylore.errors import NotFound

SIGNED = 16  # bytes of the signature
PATTERN = r"^[A-Za-z0-9_-]+$"


def cursor(secret: bytes, of: str, last: tuple[str, str]) -> str:
    """The cursor after an item of a list."""
    told = json.dumps(last).encode()
    return base64.urlsafe_b64encode(_signature(secret, of, told) + told).decode().rstrip("=")


def last_of(secret: bytes, of: str, given: str) -> tuple[str, str]:
    """The item that a cursor comes after, if it is a cursor of that list."""
    try:
        raw = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4))
    except (binascii.Error, ValueError):
        raw = b""
    signature, told = raw[:SIGNED], raw[SIGNED:]
    if not told or not hmac.compare_digest(signature, _signature(secret, of, told)):
        raise NotFound(
            "there is no such page: take the cursor from `next` of the page before, of the same list"
        )
    uri, id_ = json.loads(told)
    return str(uri), str(id_)


def _signature(secret: bytes, of: str, told: bytes) -> bytes:
    return hmac.new(secret, of.encode("utf-8", "surrogatepass") + b"\0" + told, sha256).digest()[:SIGNED]
