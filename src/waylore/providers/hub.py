"""Check whether models can be downloaded, before a library tries for a minute.

fastembed tries three times, waits 39 seconds in between and prints its own log. One short request shows whether the
hub can be reached. It downloads nothing.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from waylore.errors import ModelUnavailable

TIMEOUT_SECONDS = 2.0


def check_hub(model: str, setting: str = "embedding.path") -> None:
    """Raise an error if the hub does not answer within two seconds. `setting` names the folder to use instead."""
    from huggingface_hub import constants, get_session  # noqa: PLC0415 (comes with the local models)

    problems: list[Exception] = []
    answers: list[Any] = []

    def send() -> None:
        try:
            answers.append(get_session().head(constants.ENDPOINT, timeout=TIMEOUT_SECONDS))
        except Exception as error:  # noqa: BLE001 (the client is httpx or requests, by version)
            problems.append(error)

    # The timeout of the client does not include name resolution.
    request = Thread(target=send, daemon=True)
    request.start()
    request.join(TIMEOUT_SECONDS)
    if not answers:
        reason = problems[0] if problems else f"no answer within {TIMEOUT_SECONDS:.0f} s"
        raise ModelUnavailable(
            f"{model} cannot be downloaded: {constants.ENDPOINT} cannot be reached ({reason}); connect to a network, "
            f"or give a folder with its files (`path` in Python, {setting} in waylore.toml)"
        )


@contextmanager
def mute_logs() -> Iterator[None]:
    """Hide the logs of fastembed and huggingface_hub; their errors are raised anyway."""
    from loguru import logger  # noqa: PLC0415 (comes with fastembed)

    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    logger.disable("fastembed")
    hub.setLevel(logging.ERROR)
    try:
        yield
    finally:
        hub.setLevel(level)
        logger.enable("fastembed")
