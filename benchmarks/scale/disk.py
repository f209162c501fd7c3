"""Predict the bytes that passages will take, and refuse to load them if the disk would become too full."""

import shutil
from pathlib import Path

KEPT_SHARE = 5  # one part in so many of the disk must stay free
# Bytes of a passage with words and a vector of 384 dimensions, its part of the vector index included, and of each of its
# facts with their entities: of PostgreSQL as this benchmark measured them at 100,000 passages; others are estimates.
PASSAGE_BYTES = {"postgres": 6_200, "cells": 6_200, "qdrant": 8_000, "sqlite": 3_500}
FACT_BYTES = {"postgres": 2_500, "cells": 2_500, "qdrant": 3_000, "sqlite": 1_300}
BASE_BYTES = {"postgres": 1_500_000_000, "cells": 1_200_000_000, "qdrant": 2_000_000_000, "sqlite": 50_000_000}  # logs


class DiskTooSmall(Exception):
    """The passages do not fit."""


def predict_bytes(engine: str, passages: int, facts: int) -> int:
    """Return the bytes that a store will take at most while it is loaded."""
    return BASE_BYTES[engine] + passages * (PASSAGE_BYTES[engine] + facts * FACT_BYTES[engine])


def measure_folder(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def check_room(wanted: int, present: int, used: int, free: int) -> None:
    """Raise DiskTooSmall if `wanted` bytes, of which some are present, would leave less than a fifth of a disk free."""
    left = free - max(wanted - present, 0)
    least = (used + free) // KEPT_SHARE
    if left < least:
        raise DiskTooSmall(
            f"{wanted / 1e9:,.1f} GB would leave {left / 1e9:,.1f} GB of the disk free, and {least / 1e9:,.1f} must "
            "stay: load fewer passages, or use a larger disk"
        )


def check_disk(folder: Path, engine: str, passages: int, facts: int) -> int:
    """Print the bytes that will be loaded into a folder, and return them. Raise DiskTooSmall if they do not fit."""
    wanted, present = predict_bytes(engine, passages, facts), measure_folder(folder)
    each = PASSAGE_BYTES[engine] + facts * FACT_BYTES[engine]
    _, used, free = shutil.disk_usage(folder)
    print(
        f"{engine}: {passages:,} passages x {each:,} bytes + {BASE_BYTES[engine] / 1e9:.2f} GB = {wanted / 1e9:,.1f} GB; "
        f"{present / 1e9:,.1f} GB are loaded, {free / 1e9:,.1f} GB are free",
        flush=True,
    )
    check_room(wanted, present, used, free)
    return wanted
