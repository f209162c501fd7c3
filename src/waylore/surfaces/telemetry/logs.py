"""Write logs with structlog on top of Python's logging: one line of text or JSON on stderr for each event.

Each line has the time, the level, the logger, and the ids of its request and trace. All loggers are shown, also
uvicorn's. Uvicorn's line for each request contains the query, so `http.instrumentation` writes its own line instead.
Passwords and tokens are masked in the finished line. This module logs nothing itself.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from opentelemetry import trace
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.typing import EventDict, Processor

NAME = "waylore-telemetry"
SECRETS = (
    (re.compile(r"(//[^:\s\"']*:)[^\s\"']+(?=@)"), r"\1***"),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]+"), r"\1***"),
    (
        re.compile(r"(?i)\b((?:password|passwd|secret|token|api[_-]?key)\\?[\"']?\s*[=:]\s*\\?[\"']?)[^\s\"'\\&,}]+"),
        r"\1***",
    ),
)
FIELDS = ("method", "route", "status", "seconds")  # fields that a line may have besides its text


def set_up(log_format: str, level: str) -> None:
    """Write log lines of this level and above, as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(NAME)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=_list_processors(), processors=[*_list_renderers(log_format), mask_secrets]
        )
    )
    root = logging.getLogger()
    root.handlers = [*(each for each in root.handlers if each.get_name() != NAME), handler]
    root.setLevel(level.upper())
    # Each retry of the exporter is a warning.
    logging.getLogger("opentelemetry.exporter").setLevel(max(logging.ERROR, root.level))
    for name, is_shown in (("uvicorn", True), ("uvicorn.error", True), ("uvicorn.access", False)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], is_shown


@contextmanager
def bind_request(request_id: str) -> Iterator[None]:
    """Add the id of a request to the log lines that are written inside."""
    with bound_contextvars(request_id=request_id):
        yield


def mask_secrets(_: Any, __: str, line: Any) -> str:
    """Return a finished line without secrets."""
    shown = str(line)
    for secret, replacement in SECRETS:
        shown = secret.sub(replacement, shown)
    return shown


def _list_processors() -> list[Processor]:
    return [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        ExtraAdder(allow=FIELDS),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
    ]


def _list_renderers(log_format: str) -> list[Processor]:
    """Return renderers with plain tracebacks, because structlog's own show the values of variables."""
    if log_format == "json":
        return [
            ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    plain = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    return [ProcessorFormatter.remove_processors_meta, console]


def _add_trace(_: Any, __: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event
