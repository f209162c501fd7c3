"""Write answers as JSON, once: a route returns the bytes, and FastAPI neither checks nor converts them.

The schema of such a route is its `response_model`; `tests/surfaces/http/test_json.py` checks that the bytes fit it.
"""

import json
from typing import Any

import orjson
from fastapi import Response


def make_json_response(value: dict[str, Any]) -> Response:
    """Return a response with plain values as JSON."""
    return Response(write_json(value), media_type="application/json")


def write_json(value: object) -> bytes:
    """Return plain values as JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a number of more than 64 bits or a lone surrogate, which an import may have
        return json.dumps(value, allow_nan=False).encode()
