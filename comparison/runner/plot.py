"""The picture of the page as SVG. The colours follow the reader's light or dark setting.

A trial with two leaders is a square left of the line. It has no dot on the right, because an overlap would look like a short
time without a leader there.
"""

from dataclasses import dataclass
from html import escape

from .figures import percentile

STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".title{font-size:16px;font-weight:600}.note{fill:#59636e}.paper{fill:#fff}.grid{stroke:#d1d9e0}.axis{stroke:#59636e;stroke-width:1.5}"
    ".ours{fill:#0969da;stroke:#0969da}.theirs{fill:#6e7781;stroke:#6e7781}.two-leaders{fill:#cf222e}text.two-leaders{font-weight:600}"
    "circle,rect.two-leaders{fill-opacity:.45;stroke-opacity:.7}circle.stop{fill:none}.mark{stroke-width:2.5}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.paper{fill:#0d1117}.grid{stroke:#3d444d}.axis{stroke:#9198a1}"
    ".ours{fill:#58a6ff;stroke:#58a6ff}.theirs{fill:#b1bac4;stroke:#b1bac4}.two-leaders{fill:#ff7b72}circle.stop{fill:none}}"
)
WIDTH, LABELS, RIGHT, TOP, ROW, SQUARE = 760, 264, 24, 92, 26, 7


@dataclass(frozen=True)
class Line:
    """A contestant. All values are in seconds; the times without a leader are of the trials with one leader at a time."""

    label: str
    is_ours: bool
    overlaps: list
    kills: list
    stops: list


def end_of(values, step=1):
    return step * (int(max(values, default=0) / step) + 1)


def plot(title, note, lines):
    before = end_of(value for line in lines for value in line.overlaps)
    after = end_of(value for line in lines for value in [*line.kills, *line.stops])
    scale = (WIDTH - LABELS - RIGHT) / (before + after)
    bottom = TOP + ROW * len(lines)

    def x(value):
        return LABELS + (before + value) * scale

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" width="{WIDTH}" height="{bottom + 34}" role="img" '
        'aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>', f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{bottom + 34}"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>', f'<text class="note" x="16" y="46">{escape(note)}</text>',
        f'<text class="two-leaders" x="{x(0) - 12:.1f}" y="{TOP - 16}" text-anchor="end">■ two leaders</text>',
        f'<text x="{x(0) + 12:.1f}" y="{TOP - 16}">no leader: ● kill ○ graceful stop</text>',
    ]
    for at in range(-before, after + 1):
        kind = "grid" if at else "axis"
        parts.append(f'<path class="{kind}" d="M{x(at):.1f} {TOP - 8}V{bottom}"/>')
        parts.append(f'<text class="note" x="{x(at):.1f}" y="{bottom + 20}" text-anchor="middle">{abs(at)} s</text>')
    for index, line in enumerate(lines):
        parts += row(line, x, TOP + ROW * index + ROW // 2)
    return "\n".join([*parts, "</svg>", ""])


def row(line, x, y):
    kind = "ours" if line.is_ours else "theirs"
    yield f'<text x="{LABELS - 12}" y="{y + 4}" text-anchor="end">{escape(line.label)}</text>'
    for value in sorted(line.overlaps):
        # A short overlap stays on its side of the line.
        left = min(x(-value) - SQUARE / 2, x(0) - SQUARE)
        yield f'<rect class="two-leaders" x="{left:.1f}" y="{y - SQUARE / 2}" width="{SQUARE}" height="{SQUARE}"/>'
    for fault, values in (("kill", line.kills), ("stop", line.stops)):
        for value in sorted(values):
            yield f'<circle class="{kind} {fault}" cx="{x(value):.1f}" cy="{y}" r="4"/>'
        if values:
            yield f'<path class="mark {kind}" d="M{x(percentile(values, 0.5)):.1f} {y - 10}v20"/>'
