"""Logs, through structlog over Python's own logging: a line of text or JSON on stderr for each event.

Each line has the time, the level, who wrote it, and the request and the trace that it belongs to. Everything
that logs is heard, uvicorn too; but its line for each request shows what was asked, so `http_telemetry` writes
another. Passwords and tokens are masked in the finished line. Nothing here writes a log line of its own.
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
    (re.compile(r"(//[^:/@\s\"']*:)[^@\s\"']+(?=@)"), r"\1***"),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]+"), r"\1***"),
    (
        re.compile(
            r"(?i)\b((?:password|passwd|secret|token|api[_-]?key)\\?[\"']?\s*[=:]\s*\\?[\"']?)[^\s\"'\\&,}]+"
        ),
        r"\1***",
    ),
)
FIELDS = ("method", "route", "status", "seconds")  # that a line may have beside its text


def set_up(form: str, level: str) -> None:
    """Write what is logged at this level and above, as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(NAME)
    handler.setFormatter(ProcessorFormatter(foreign_pre_chain=_chain(), processors=[*_rendering(form), masked]))
    root = logging.getLogger()
    root.handlers = [*(each for each in root.handlers if each.get_name() != NAME), handler]
    root.setLevel(level.upper())
    logging.getLogger("opentelemetry.exporter").setLevel(
        max(logging.ERROR, root.level)
    )  # each retry is a warning
    for name, is_heard in (("uvicorn", True), ("uvicorn.error", True), ("uvicorn.access", False)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], is_heard


@contextmanager
def of_request(request_id: str) -> Iterator[None]:
    """What is logged within belongs to a request."""
    with bound_contextvars(request_id=request_id):
        yield


def masked(_: Any, __: str, line: Any) -> str:
    """A finished line without secrets."""
    shown = str(line)
    for secret, instead in SECRETS:
        shown = secret.sub(instead, shown)
    return shown


def _chain() -> list[Processor]:
    return [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        ExtraAdder(allow=FIELDS),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _of_trace,
    ]


def _rendering(form: str) -> list[Processor]:
    """Tracebacks are plain: structlog's own would show the values of variables."""
    if form == "json":
        return [
            ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    plain = structlog.dev.plain_traceback
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    return [ProcessorFormatter.remove_processors_meta, console]


def _of_trace(_: Any, __: str, event: EventDict) -> EventDict:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event
