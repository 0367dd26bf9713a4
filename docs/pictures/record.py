#!/usr/bin/env python3
"""Records the picture of the README: runs the commands below on a real terminal and draws the screen as SVG.

Usage: docs/pictures/record.py [OUTPUT.svg]

Needs `skillbox` in PATH, a host on which native sandboxes work, and a package index for pandas and matplotlib. Uses a temporary
home and data folder. The default output is docs/pictures/terminal.svg.
"""
import base64
import fcntl
import os
import pathlib
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from xml.sax.saxutils import escape

COLUMNS, ROWS = 126, 40
TIMEOUT_SECONDS = 300

CODE = """\
import pandas as pd

sales = pd.read_csv("sales.csv").groupby("month", sort=False).amount.sum()
sales.plot.bar(rot=0, title="Sales", figsize=(4.2, 2.1)).figure.savefig("sales.png", bbox_inches="tight")
sales.to_dict()
"""
DATA = "month,amount\nJan,120\nJan,80\nFeb,260\nMar,90\nMar,150\nApr,310\n"
CHART = "saved/sales.png"

PREPARATION = "skillbox run chart.py --file sales.csv --requirement pandas --requirement matplotlib --out first"
COMMANDS = [
    "cat chart.py",
    "skillbox run chart.py --file sales.csv --requirement pandas --requirement matplotlib --out saved",
    "skillbox prove --only P1 --backend native",
]

CELL, LINE, MARGIN, BAR = 7.6, 17, 18, 34
CHART_WIDTH, CHART_HEIGHT = 262, 132
COLOURS = {"31": "#f47067", "32": "#6bc46d", "33": "#daaa3f", "34": "#6cb6ff", "36": "#56d4dd"}


class Screen:
    """The part of a terminal that Skillbox uses; anything else is an error instead of a wrong picture."""

    def __init__(self):
        self.lines, self.column, self.style = [[]], 0, ()

    def write(self, text):
        for escape_sequence, character in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z])|([\s\S])", text):
            if escape_sequence:
                self.control(escape_sequence[2:-1], escape_sequence[-1])
            elif character == "\n":
                self.lines.append([])
            elif character == "\r":
                self.column = 0
            elif character < " ":
                raise SystemExit(f"unknown control character {character!r}")
            else:
                self.put(character)

    def control(self, argument, kind):
        if kind == "m":
            for code in argument.split(";"):
                self.style = () if code in ("", "0") else (*self.style, code)
        elif kind == "K" and argument == "2":
            self.lines[-1] = []
        elif kind not in "hl":
            raise SystemExit(f"unknown escape sequence ESC[{argument}{kind}")

    def put(self, character):
        if self.column == COLUMNS:
            self.lines.append([])
            self.column = 0
        line = self.lines[-1]
        line.extend([(" ", ())] * (self.column + 1 - len(line)))
        line[self.column] = (character, self.style)
        self.column += 1


def on_terminal(command, folder):
    """What a command sends to its terminal; fails if the command does."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or name.startswith("SKILLBOX_DEPS_")}
    environment |= {"SKILLBOX_DATA_DIR": f"{folder}/.skillbox", "SKILLBOX_SANDBOX_BACKEND": "native"}
    arguments = ["timeout", str(TIMEOUT_SECONDS), *shlex.split(command)]
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux reports a closed terminal as an error.
            piece = b""
        if not piece:
            break
        sent += piece
    if process.wait() != 0:
        raise SystemExit(f"{command}: exit code {process.returncode}\n{sent.decode()}")
    return sent.decode()


def runs_of_style(line):
    """Pieces of a line with one style: column, text, style."""
    start = 0
    for end in range(1, len(line) + 1):
        if end == len(line) or line[end][1] != line[start][1]:
            yield start, "".join(character for character, _ in line[start:end]), line[start][1]
            start = end


def svg_line(number, line):
    for column, text, style in runs_of_style(line):
        if text.strip():
            colour = next((COLOURS[code] for code in style if code in COLOURS), "#cdd9e5")
            weight = ' font-weight="bold"' if "1" in style else ""
            dim = ' opacity="0.6"' if "2" in style else ""
            x, y = MARGIN + column * CELL, BAR + MARGIN + number * LINE
            yield (f'<text x="{x:.1f}" y="{y}" textLength="{len(text) * CELL:.1f}" fill="{colour}"{weight}{dim} '
                   f'xml:space="preserve">{escape(text)}</text>')


def svg(screen, chart, chart_line):
    lines = screen.lines
    while lines and not lines[-1]:
        lines = lines[:-1]
    width, height = 2 * MARGIN + COLUMNS * CELL, BAR + 2 * MARGIN + len(lines) * LINE
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="{c}"/>' for n, c in enumerate(("#f47067", "#daaa3f", "#6bc46d")))
    x, y = width - MARGIN - CHART_WIDTH, BAR + MARGIN + (chart_line - 1) * LINE - 8
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img">',
        "<title>skillbox runs a Python program with pandas and saves its chart, then proves that sandboxes have no network</title>",
        f'<rect width="{width:.0f}" height="{height}" rx="9" fill="#1c2128"/>{dots}',
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12.5">',
        *(element for number, line in enumerate(lines) for element in svg_line(number, line)),
        "</g>",
        f'<image x="{x:.0f}" y="{y:.0f}" width="{CHART_WIDTH}" height="{CHART_HEIGHT}" href="data:image/png;base64,{base64.b64encode(chart).decode()}"/>',
        "</svg>\n",
    ])


def record():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "chart.py").write_text(CODE)
        (home / "sales.csv").write_text(DATA)
        on_terminal(PREPARATION, folder)  # installs the packages, which takes longer than a picture can show
        screen, chart_line = Screen(), 0
        for command in COMMANDS:
            screen.write(f"\x1b[1m\x1b[36m$\x1b[0m \x1b[1m{command}\x1b[0m\r\n")
            if "--out saved" in command:
                chart_line = len(screen.lines)
            screen.write(on_terminal(command, folder) + "\r\n")
        return svg(screen, (home / CHART).read_bytes(), chart_line)


if __name__ == "__main__":
    default = pathlib.Path(__file__).with_name("terminal.svg")
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target.write_text(record(), encoding="utf-8")
    print(f"wrote {target}")
