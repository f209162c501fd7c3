"""Measure frames per second of the explorer's graph while it is dragged with the mouse, beside an empty canvas.

    python -m benchmarks.frames                            300 and 5,000 names, 1440 pixels wide
    python -m benchmarks.frames --sizes 300 --rounds 5 --width 390
    python -m benchmarks.frames --graphics gpu --reach 0.8

Each round opens the page in Chromium, drags the drawing in circles, then an empty canvas in its place, which stays where
it is, and one that moves with the mouse. The ratios are medians over the rounds, so that a machine with other work slows
all sides. By default Chromium draws as it does without a graphics card. With `--graphics gpu` it believes to have one, which
SwiftShader plays on the processor: there, moving anything costs more than what is drawn.
It needs the built page, its packages (`just explorer`) and Chromium.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tools.browser import run_script
from tools.serving import start_service


@dataclass(frozen=True, slots=True)
class FrameRates:
    """Frames per second of a drawing of some names and of two empty canvases, as medians of rounds."""

    nodes: int
    drawn: float
    empty: float
    moved: float  # of an empty canvas that the browser moves with the mouse
    to_empty: float  # ratio of `drawn` in the same round
    to_moved: float


@dataclass(frozen=True, slots=True)
class Drag:
    """How the mouse drags, and in which browser."""

    seconds: float = 3.0
    width: int = 1440  # of the window in pixels
    reach: float = 0.15  # of a circle, as a share of half the drawing
    graphics: str = "software"


def measure(sizes: Sequence[int], *, rounds: int, drag: Drag) -> tuple[str, list[FrameRates]]:
    """Return the name of the renderer, and the frame rates for each number of names."""
    with TemporaryDirectory() as folder, start_service("empty.waylore", Path(folder)) as running:
        options = {"rounds": rounds, "sizes": list(sizes), **asdict(drag)}
        answer = json.loads(run_script("frames", {"url": running.url, **options}, Path(folder)))
    return answer["renderer"], [_summarise(size, answer["rounds"]) for size in sizes]


def _summarise(size: int, rounds: Sequence[dict[str, float]]) -> FrameRates:
    own = [each for each in rounds if each["nodes"] == size]
    drawn, empty, moved = (median(each[side] for each in own) for side in ("drawn", "empty", "moved"))
    to_empty, to_moved = (median(each["drawn"] / each[side] for each in own) for side in ("empty", "moved"))
    return FrameRates(size, drawn, empty, moved, to_empty, to_moved)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the frame rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 5_000], help="numbers of names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--width", type=int, default=1440, help="of the window in pixels")
    parser.add_argument("--reach", type=float, default=0.15, help="of a circle, as a share of half the drawing")
    parser.add_argument("--graphics", choices=("software", "gpu", "none"), default="software")
    options = parser.parse_args(arguments)
    drag = Drag(options.seconds, options.width, options.reach, options.graphics)
    renderer, rates = measure(options.sizes, rounds=options.rounds, drag=drag)
    print(
        f"graphics: {options.graphics}, {renderer}; window: {options.width} pixels; medians of {options.rounds} rounds"
    )
    print("names  dragged  empty canvas  moved canvas  to empty  to moved")
    for each in rates:
        print(
            f"{each.nodes:5,}  {each.drawn:7.1f}  {each.empty:12.1f}  {each.moved:12.1f}"
            f"  {each.to_empty:8.2f}  {each.to_moved:8.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
