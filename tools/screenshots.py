"""Make SVG pictures of the output of commands, for the docs.

    python -m tools.screenshots FOLDER                   80 columns wide
    python -m tools.screenshots FOLDER --columns 120

The commands run on the notes of a fictional team, with the colours of a terminal; rich converts the output to
SVG. Nothing is drawn by hand. If the weights of potion are installed, they compute the vectors. Otherwise the
store has no vectors. Nothing is downloaded.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from tools.command import WAYLORE_COMMAND

ROOT = Path(__file__).parents[1]
POTION = ROOT / ".cache" / "models" / "potion"
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
    "cards": ("search", QUESTION),
    "explain": ("explain", QUESTION, "3"),
    "related": ("related", "Login", "--hops", "3"),
    "facts": ("facts", "Mara Lindqvist"),
    "stats": ("stats",),
    "doctor": ("doctor",),
    "config": ("config",),
    "help": ("--help",),
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures to a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    parser.add_argument("--columns", type=int, default=80, help="width of the terminal, default: 80")
    parser.add_argument("--only", nargs="*", choices=list(COMMANDS), default=list(COMMANDS), help="pictures to make")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        prepare_store(Path(folder))
        for name in options.only:
            command = COMMANDS[name]
            title = " ".join(f'"{word}"' if " " in word else word for word in command)
            svg = render_svg(title, run_command(Path(folder), options.columns, *command), options.columns)
            (options.folder / f"{name}.svg").write_text(svg, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
