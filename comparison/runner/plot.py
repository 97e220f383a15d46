"""A plot of one fault as SVG: a dot for every trial, a mark at the median. The colours follow the reader's light or dark setting."""

from html import escape

from .figures import percentile

STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".title{font-size:16px;font-weight:600}.note{fill:#59636e}.paper{fill:#fff}.grid{stroke:#d1d9e0}"
    ".ours{fill:#0969da}.theirs{fill:#b35900}.mark{stroke-width:2.5}.mark.ours{stroke:#0969da}.mark.theirs{stroke:#b35900}"
    "circle{fill-opacity:.45}"
    "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.note{fill:#9198a1}.paper{fill:#0d1117}.grid{stroke:#3d444d}"
    ".ours{fill:#58a6ff}.theirs{fill:#f0883e}.mark.ours{stroke:#58a6ff}.mark.theirs{stroke:#f0883e}}"
)
WIDTH, LEFT, RIGHT, TOP, ROW = 760, 250, 24, 70, 30


def plot(title, note, rows):
    """`rows` are (label, whether it is ours, values in seconds)."""
    height = TOP + ROW * len(rows) + 40
    top = max((value for _, _, values in rows for value in values), default=1)
    step = next(each for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if top / each <= 8 or each == 50)
    end = step * (int(top / step) + 1)
    scale = (WIDTH - LEFT - RIGHT) / end

    def x(value):
        return f"{LEFT + value * scale:.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        'aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>', f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>', f'<text class="note" x="16" y="46">{escape(note)}</text>',
    ]
    bottom = TOP + ROW * len(rows)
    for number in range(round(end / step) + 1):
        at = number * step
        lines.append(f'<path class="grid" d="M{x(at)} {TOP - 8}V{bottom}"/>')
        lines.append(f'<text class="note" x="{x(at)}" y="{bottom + 20}" text-anchor="middle">{at:g} s</text>')
    for index, (label, is_ours, values) in enumerate(rows):
        kind, y = "ours" if is_ours else "theirs", TOP + ROW * index + ROW // 2
        lines.append(f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        lines += [f'<circle class="{kind}" cx="{x(value)}" cy="{y}" r="4"/>' for value in sorted(values)]
        if values:
            lines.append(f'<path class="mark {kind}" d="M{x(percentile(values, 0.5))} {y - 11}v22"/>')
    return "\n".join([*lines, "</svg>", ""])
