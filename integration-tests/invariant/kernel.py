"""The functions of the kernel, each with the rules that its comments say it keeps."""

import re
from pathlib import Path

KERNEL = Path(__file__).parents[2] / "protocol/src"
NAMES = r"[SM]?\d+(?:(?:, | to | and |, and )[SM]?\d+)*"
RULES = re.compile(rf"\b[Rr]ules? ({NAMES})|\b([SM]\d+(?:(?:, | to | and |, and )[SM]\d+)*)\b")
FUNCTION = re.compile(r"(?:pub(?:\([a-z]+\))? )?(?:const )?fn (\w+)")
ITEM = re.compile(r"(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|impl|mod|use|const|type)\b")


def spread(text):
    """The rules that a text like "8 and 9" or "S1 to S3" names."""
    for part in re.split(r", and |, | and ", text):
        first, _, last = part.partition(" to ")
        letter, begin = re.fullmatch(r"([SM]?)(\d+)", first).groups()
        end = re.fullmatch(r"[SM]?(\d+)", last or first)[1]
        yield from (f"{letter}{number}" for number in range(int(begin), int(end) + 1))


def rules():
    """The functions that keep each rule, by the comments over them and inside them: `file: function`."""
    kept = {}
    for file in sorted(KERNEL.rglob("*.rs")):
        if "policy" in file.parts:
            continue
        function, above = None, []
        for line in map(str.strip, file.read_text().splitlines()):
            if line.startswith("///"):
                above.append(line[3:].strip())
                continue
            if line.startswith("#["):
                continue
            if found := FUNCTION.match(line):
                function = found[1]
            elif ITEM.match(line):
                function, above = None, []
            comment = line.removeprefix("//").strip() if re.match(r"//(?!!)", line) else ""
            text = " ".join([*above, comment] if function else [comment] if function else [])
            above = [] if line else above
            for found in RULES.finditer(text):
                for rule in spread(found[1] or found[2]):
                    places = kept.setdefault(rule, {}).setdefault(str(file.relative_to(KERNEL)), [])
                    if function not in places:
                        places.append(function)
    return kept


def lines():
    """One line of a list for each rule."""
    order = sorted(rules().items(), key=lambda rule: (rule[0].rstrip("0123456789"), int(rule[0].lstrip("SM"))))
    for rule, files in order:
        places = (f"`{file}` ({', '.join(f'`{name}`' for name in names)})" for file, names in files.items())
        yield f"{rule}: {', '.join(places)}"
