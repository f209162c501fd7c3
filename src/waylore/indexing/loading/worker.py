"""Prepare units in a separate process: this is the program of the processes that `loading.machine` starts.

The process holds the models. It has no store: another process writes its batches. It ends when its parent ends, because
it can then neither read nor write.
"""

import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from waylore.errors import WayloreError
from waylore.indexing.loading.steps import prepare_unit


def main() -> None:
    """Prepare the units that arrive on the connection whose number is the first argument; the job comes first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    try:
        job, unit = connection.recv(), connection.recv()  # before the models: all processes load theirs at once
        models = job.make_models()
        while True:
            for message in prepare_unit(unit, job, models):
                connection.send(message)
            unit = connection.recv()
    except (EOFError, OSError):
        return
    except Exception as error:  # noqa: BLE001 (the parent raises it)
        connection.send(error if isinstance(error, WayloreError) else WayloreError(f"{type(error).__name__}: {error}"))
