"""Measure frames per second of the explorer's graph while it is dragged with the mouse, beside an empty drawing.

    python -m benchmarks.frames                            300 and 5,000 names, 1440 pixels wide
    python -m benchmarks.frames --sizes 300 --rounds 5 --width 390

Each round opens the page in Chromium, drags the drawing in circles, then one of two names, which is the canvas as good
as empty, then a canvas that nothing is drawn on. The ratio is that to two names, as the median over the rounds, so that
a machine with other work slows both sides. Without a graphics card, showing a canvas of WebGL takes most of a frame.
It needs the built page, its packages (`just explorer`) and Chromium.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tools.browser import run_script
from tools.serving import start_service


@dataclass(frozen=True, slots=True)
class FrameRates:
    """Frames per second of a drawing of some names, of one of two names and of an empty canvas, as medians of rounds."""

    nodes: int
    drawn: float
    empty: float
    bare: float
    ratio: float  # of `drawn` to `empty` in the same round


def measure(
    sizes: Sequence[int], *, rounds: int, seconds: float = 3.0, width: int = 1440, bare: bool = True
) -> tuple[str, list[FrameRates]]:
    """Return the name of the renderer, and the frame rates for each number of names."""
    with TemporaryDirectory() as folder, start_service("empty.waylore", Path(folder)) as running:
        options = {"rounds": rounds, "seconds": seconds, "width": width, "bare": bare}
        answer = json.loads(run_script("frames", {"url": running.url, "sizes": list(sizes), **options}, Path(folder)))
    return answer["renderer"], [_summarise(size, answer["rounds"]) for size in sizes]


def _summarise(size: int, rounds: Sequence[dict[str, float]]) -> FrameRates:
    own = [each for each in rounds if each["nodes"] == size]
    drawn, empty, bare = (median(each[side] for each in own) for side in ("drawn", "empty", "bare"))
    return FrameRates(size, drawn, empty, bare, median(each["drawn"] / each["empty"] for each in own))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the frame rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 5_000], help="numbers of names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--width", type=int, default=1440, help="of the window in pixels")
    options = parser.parse_args(arguments)
    renderer, rates = measure(options.sizes, rounds=options.rounds, seconds=options.seconds, width=options.width)
    print(f"renderer: {renderer}; window: {options.width} pixels; medians of {options.rounds} rounds")
    print("names  dragged  two names  nothing  ratio to two names")
    for each in rates:
        print(f"{each.nodes:5,}  {each.drawn:7.1f}  {each.empty:9.1f}  {each.bare:7.1f}  {each.ratio:18.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
