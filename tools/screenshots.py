"""Make SVG pictures of the output of commands, and pictures of the explorer, for the docs.

    python -m tools.screenshots FOLDER                   80 columns wide
    python -m tools.screenshots FOLDER --columns 120
    python -m tools.screenshots FOLDER --only explorer explorer-insight   needs the built page and Chromium
    python -m tools.screenshots FOLDER --views           every view, wide and narrow, light and dark, to look at

The commands run on the notes of a fictional team, with the colours of a terminal; rich converts the output to
SVG. Chromium takes the pictures of the explorer. Nothing is drawn by hand. If the weights of potion are installed,
they compute the vectors. Otherwise the store has no vectors. Nothing is downloaded.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from tools.browser import run_script
from tools.command import WAYLORE_COMMAND
from tools.models import CACHE
from tools.serving import start_service

from waylore import Waylore
from waylore.providers.embedders.model2vec import Model2VecEmbedder

POTION = CACHE / "potion"
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # removed, because a browser would download them
QUESTION = "Who can help when the login is down?"
NOTES = {
    "login.md": """# Login

The login checks passwords and issues tokens. Login needs Sessions, and asks [[Sessions]] before
it lets anyone in.

## On call

When the login is down, look at the dashboard first.
""",
    "sessions.md": """---
owner: Mara Lindqvist
team: Platform
---
# Sessions

Sessions keeps tokens for eight hours in [[Larder]]. It ran out of disk on 3 March.
""",
    "larder.md": """---
owner: Kofi Mensah
---
# Larder

Larder is the key-value store. Larder depends on the disks of [[Cellar]].
""",
    "people/mara.md": """---
leads: Platform
---
# Mara Lindqvist

Mara Lindqvist knows the session keeper inside out. She is in Bergen, and answers at night.
""",
    "people/kofi.md": """# Kofi Mensah

Kofi Mensah works with Mara Lindqvist. He wrote the first Larder in Accra.
""",
    "deploys.md": """# Deploys

Deploys happen on Tuesdays, never on Fridays. Payments waits for the login tests.
""",
    "payments.md": """# Payments

Payments needs Login for every refund above fifty euros.
""",
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "search": ("search", QUESTION, "--explain", "--top-k", "2"),
    "explain": ("explain", QUESTION, "3"),
    "related": ("related", "Login", "--hops", "3"),
}
PAGE_QUESTION = "Who looks after what Login needs?"
VIEWS: dict[str, tuple[str, str]] = {  # the address of each view of the explorer, and what is waited for
    "explorer": (f"/ask?{urlencode({'q': PAGE_QUESTION})}", "article.card"),
    "explorer-graph": ("/graph?entity=Login&hops=3", ".canvas[data-settled]"),
    "explorer-documents": ("/documents", ".list li"),
    "explorer-memory": ("/memory?user=ida", ".changes li"),
    "explorer-insight": ("/insight", ".sizes dd"),
}
WIDE, NARROW = (1280, 900), (390, 844)
QUESTIONS = (QUESTION, PAGE_QUESTION, "What does Payments need?", "When are deploys?", "Who is in Bergen?")
SAID = {
    "2026-02-02": "I live in Turku and work at Corvane Robotics.",
    "2026-02-20": "My favourite tea is rooibos.",
    "2026-03-09": "I moved to Aarhus. I live in Aarhus now.",
}
DARK = TerminalTheme(
    (24, 26, 33),
    (215, 218, 224),
    [
        (40, 44, 52),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (171, 178, 191),
    ],
    [
        (92, 99, 112),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (255, 255, 255),
    ],
)


def render_svg(command: str, printed: str, columns: int) -> str:
    """Render the output of a command as SVG, as a terminal shows it."""
    console = Console(record=True, width=columns, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(printed.rstrip("\n")), soft_wrap=True)
    plain = FONTS.sub("", CONSOLE_SVG_FORMAT)
    return console.export_svg(title=f"waylore {command}", theme=DARK, code_format=plain, unique_id="waylore")


def run_command(folder: Path, columns: int, *arguments: str) -> str:
    """Run a command as at a terminal with `columns` columns and return its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WAYLORE_", "NO_COLOR"))}
    env |= {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": str(columns)}
    done = subprocess.run(
        [*WAYLORE_COMMAND, *arguments],
        cwd=folder,
        env=env | {"XDG_CONFIG_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.stdout


def prepare_store(folder: Path) -> None:
    """Write the notes to a folder and add them to a store."""
    for name, text in NOTES.items():
        (folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / name).write_text(text, "utf-8")
    embedder = ("--model-path", str(POTION)) if POTION.exists() else ("--embedder", "none")
    run_command(folder, 80, "init", *embedder)
    run_command(folder, 80, "add", "notes")


def prepare_history(folder: Path, name: str) -> None:
    """Write a store with the same notes, each added on another day, and with what a user said."""
    today = [datetime(2026, 2, 1, 9, tzinfo=UTC)]
    embedder = Model2VecEmbedder(POTION) if POTION.exists() else None
    with chdir(folder), Waylore.open(name, embedder=embedder, clock=lambda: today[0]) as memory:
        for number, note in enumerate(sorted(Path("notes").rglob("*.md"))):
            today[0] += timedelta(days=1 + number * 5 % 8)
            memory.add_files(note)
        for day, said in SAID.items():
            today[0] = datetime.fromisoformat(f"{day}T18:00:00+00:00")
            memory.remember([{"role": "user", "content": said}], user="ida", session=day)


def take_page_pictures(folder: Path, pictures: Sequence[dict[str, object]]) -> None:
    """Serve the store with a history, ask some questions, and take pictures of the explorer."""
    prepare_history(folder, "history.waylore")
    models = {"WAYLORE_EMBEDDING_PROVIDER": "model2vec", "WAYLORE_EMBEDDING_PATH": str(POTION)}
    with start_service("history.waylore", folder, others=models if POTION.exists() else {}) as running:
        with running.open_client() as client:
            for question, method in product(QUESTIONS, ("auto", "hybrid", "neighbourhood")):
                client.post("/search", json={"query": question, "method": method}).raise_for_status()
        run_script("pictures", {"url": running.url, "pictures": pictures}, folder)


def list_pictures(folder: Path, names: Sequence[str], *, is_complete: bool) -> list[dict[str, object]]:
    """Return the pictures of views: of each one wide and light, or in both widths and themes."""
    looks = list(product((WIDE, NARROW), ("light", "dark"))) if is_complete else [(WIDE, "light")]
    return [
        {
            "file": str(folder / (f"{name}-{width}-{theme}.png" if is_complete else f"{name}.png")),
            "address": VIEWS[name][0],
            "ready": VIEWS[name][1],
            "width": width,
            "height": height,
            "theme": theme,
            "report": "",
        }
        for name in names
        for (width, height), theme in looks
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures to a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    parser.add_argument("--columns", type=int, default=80, help="width of the terminal, default: 80")
    parser.add_argument("--views", action="store_true", help="every view of the explorer in each width and theme")
    known = [*COMMANDS, *VIEWS]
    parser.add_argument("--only", nargs="*", choices=known, default=known, help="pictures to make")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        prepare_store(Path(folder))
        for name in [each for each in options.only if each in COMMANDS and not options.views]:
            command = COMMANDS[name]
            title = " ".join(f'"{word}"' if " " in word else word for word in command)
            svg = render_svg(title, run_command(Path(folder), options.columns, *command), options.columns)
            (options.folder / f"{name}.svg").write_text(svg, "utf-8")
        views = [*VIEWS] if options.views else [each for each in options.only if each in VIEWS]
        if views:
            take_page_pictures(Path(folder), list_pictures(options.folder.absolute(), views, is_complete=options.views))
    return 0


if __name__ == "__main__":
    sys.exit(main())
