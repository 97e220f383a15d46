"""Holds the rules, the dashboard, the policies and the pages against each other and against the source. Run by docs/check/run."""

import json
import re
import subprocess
import tomllib
import unittest

import promql_parser
import yaml

import english
from repository import DOCS, ROOT, files, table

# What Prometheus adds to every series, and `le` of histograms.
TARGET_LABELS = {"instance", "job", "le"}
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


def pages():
    """Every page that people read."""
    return files("*.md")


def slugs(page):
    """The anchors of a page: those that it has, and those that GitHub makes of its headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.M)
    } | set(re.findall(r'<a id="([\w-]+)">', text))


def anchors(target):
    """The places to which a link can lead: the tests of a source file, and the anchors of a page."""
    if target.suffix != ".rs":
        return slugs(target)
    return set(re.findall(r"#\[(?:tokio::)?test\b.*\]\s+(?:#\[.*\]\s+)*(?:async )?fn (\w+)", target.read_text()))


def documented_metrics():
    """Name -> (type, labels), from the table in metrics.md."""
    return {
        row[0].strip("`"): (row[1], {"name", *re.findall(r"`(\w+)`", row[2])}) for row in table(DOCS / "metrics.md", "## Table")
    }


def selectors(expression):
    """Every selector of an expression: its metric and the labels that it matches on."""
    found = []
    walk(promql_parser.parse(expression), found)
    return found


def walk(node, found):
    if isinstance(node, promql_parser.VectorSelector):
        found.append((node.name, {matcher.name for matcher in node.matchers.matchers}))
    for attribute in ("expr", "lhs", "rhs", "param", "vector_selector", "vs"):
        child = getattr(node, attribute, None)
        if isinstance(child, promql_parser.Expr):
            walk(child, found)
    for child in getattr(node, "args", None) or []:
        walk(child, found)


def dashboard():
    return json.loads((DOCS / "grafana-dashboard.json").read_text())


def dashboard_expressions():
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            # Grafana's own variables, as it would fill them in.
            yield panel["title"], re.sub(r"\$__(rate_interval|range)", "5m", target["expr"])


def alerts():
    groups = yaml.safe_load((DOCS / "prometheus-alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def sources(*directories):
    """The source text with strings put together that go on over the end of a line."""
    text = "".join(path.read_text() for directory in directories for path in sorted((ROOT / directory).rglob("*.rs")))
    return re.sub(r"\\\n\s*", "", text)


LOUD = {"error", "warn"}

# The crates that log.
LOGGING = ("leaderelection/src", "conformance/src", "backends", "cli/src", "lease-api/src", "peers/src", "serving/src")


def code(text):
    """The texts in code, without line breaks."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def quoted_messages():
    """The level and the message of everything that trouble.md quotes from the log."""
    return [(row[1].split(":")[0], code(row[0])[0]) for row in table(DOCS / "trouble.md", "## Messages")]


def quoted_first(text):
    """The texts with which the items of lists begin."""
    return [quote for item in re.findall(r"^- (`[^`]+`(?:, `[^`]+`)*)", text, re.M) for quote in code(item)]


def section(page, heading):
    """The text under a heading, up to the next one."""
    return re.split(r"^#+ ", page.read_text().split(f"\n{heading}\n", 1)[1], flags=re.M)[0]


def log_messages(text):
    """The level and the message of everything that is logged loudly. The message is the last string of its macro."""
    string = r'"(?:[^"\\]|\\.)*"'
    for start in re.finditer(rf"\b({'|'.join(sorted(LOUD))})!\(", text):
        depth, strings, at = 1, [], start.end()
        while depth:
            token = re.compile(rf"{string}|[()]").search(text, at)
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            strings += [token[0][1:-1]] if token[0].startswith('"') else []
            at = token.end()
        yield start[1], strings[-1]


class Expressions(unittest.TestCase):
    def check(self, where, expression):
        metrics = documented_metrics()
        found = selectors(expression)
        # The walk above must not lose a part of the expression.
        self.assertEqual(len(found), len(re.findall(r"\bleader_election_\w+", expression)), (where, expression))
        for name, labels in found:
            base = name
            for part in HISTOGRAM_PARTS:
                if name.endswith(part) and metrics.get(name.removesuffix(part), ("",))[0] == "histogram":
                    base = name.removesuffix(part)
            self.assertIn(base, metrics, f"{where}: {name} is not in the table of metrics.md")
            kind, known = metrics[base]
            self.assertEqual(kind == "histogram", base != name, f"{where}: {name} of a {kind}")
            self.assertLessEqual(labels, known | TARGET_LABELS, f"{where}: labels of {name}")
        known = set().union(*(labels for _, labels in metrics.values())) | TARGET_LABELS
        for grouped in re.findall(r"\b(?:by|on|without|ignoring) \(([^)]*)\)", expression):
            self.assertLessEqual(set(re.split(r",\s*", grouped)), known, f"{where}: {grouped}")

    def test_alerts_use_documented_metrics(self):
        for rule in alerts():
            self.check(rule["alert"], rule["expr"])

    def test_the_dashboard_uses_documented_metrics(self):
        for title, expression in dashboard_expressions():
            self.check(title, expression)

    def test_the_dashboard_shows_every_metric(self):
        text = " ".join(expression for _, expression in dashboard_expressions())
        for name in documented_metrics():
            self.assertIn(name, text)

    def test_values_of_labels_are_documented(self):
        page = (DOCS / "metrics.md").read_text() + (DOCS / "trouble.md").read_text()
        used = " ".join([rule["expr"] for rule in alerts()] + [expression for _, expression in dashboard_expressions()])
        values = re.findall(r'(?:reason|outcome|operation|resolution)[!=~]+"([^"]+)"', used)
        self.assertTrue(values)
        for value in "|".join(values).split("|"):
            self.assertIn(f"`{value}`", page)


class Alerts(unittest.TestCase):
    def test_each_says_what_and_where_to_read_on(self):
        for rule in alerts():
            self.assertEqual(rule.keys() - {"for"}, {"alert", "expr", "labels", "annotations"}, rule["alert"])
            self.assertIn(rule["labels"]["severity"], {"critical", "warning"})
            self.assertEqual(rule["annotations"].keys(), {"summary", "description", "runbook_url"}, rule["alert"])
            page, anchor = rule["annotations"]["runbook_url"].split("#")
            self.assertIn(anchor, slugs(ROOT / page), rule["alert"])

    def test_each_is_seen_to_fire_and_to_be_silent(self):
        tests = yaml.safe_load((DOCS / "check/alerts.test.yaml").read_text())["tests"]
        cases = [case for test in tests for case in test["alert_rule_test"]]
        names = {rule["alert"] for rule in alerts()}
        self.assertEqual({case["alertname"] for case in cases if case.get("exp_alerts")}, names)
        self.assertEqual({case["alertname"] for case in cases if not case.get("exp_alerts")}, names)


class Dashboard(unittest.TestCase):
    def test_panels_are_distinct_and_do_not_overlap(self):
        panels = dashboard()["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(taken & cells, panel["title"])
            taken |= cells

    def test_it_uses_its_variables(self):
        board = dashboard()
        variables = {variable["name"]: variable["type"] for variable in board["templating"]["list"]}
        self.assertEqual(variables, {"datasource": "datasource", "name": "query"})
        for panel in board["panels"]:
            for query in [panel, *panel["targets"]]:
                self.assertEqual(query["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
            for target in panel["targets"]:
                metrics = re.findall(r"\bleader_election_\w+", target["expr"])
                self.assertEqual(target["expr"].count('name=~"$name"'), len(metrics), panel["title"])


def dependencies(toml):
    """Name -> entry, of the tables [dependencies] and [dev-dependencies]."""
    return {name: entry for table in tomllib.loads(toml).values() for name, entry in table.items()}


def crates(rust):
    """The crates that an example names, at the beginning of a path."""
    code = re.sub(r'//.*|"(?:[^"\\]|\\.)*"', "", rust)
    return set(re.findall(r"(?<![\w:.])([a-z_]\w*)::", code)) - {"std", "core", "alloc", "crate", "self", "super"}


class Readmes(unittest.TestCase):
    def test_an_example_uses_exactly_the_crates_of_its_dependencies(self):
        with_example = 0
        workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
        for page in [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("backends/*/README.md")]:
            text = page.read_text()
            toml = re.search(r"^```toml\n(\[(?:dev-)?dependencies\]\n.*?)^```", text, re.M | re.S)
            examples = re.findall(r"^```rust\S*\n(.*?)^```", text, re.M | re.S)
            if not toml or not examples:
                continue
            with_example += 1
            named = dependencies(toml[1])
            used = set().union(*map(crates, examples))
            self.assertEqual({name.replace("-", "_") for name in named}, used, page)
            for name, entry in named.items():
                version, ours = (each if isinstance(each, str) else each["version"] for each in (entry, workspace[name]))
                self.assertTrue(f"{ours}.".startswith(f"{version}."), f"{page}: {name} {version}, and {ours} here")
        self.assertGreater(with_example, 2)


    def test_every_example_is_described_in_the_list_of_examples(self):
        page = (ROOT / "examples/README.md").read_text()
        tracked = subprocess.check_output(["git", "ls-files", "examples"], text=True, cwd=ROOT).splitlines()
        programs = [path for path in tracked if re.search(r"/src/(bin/\w+|main)\.rs$", path)]
        self.assertGreater(len(programs), 8)
        for program in programs:
            self.assertIn(f"]({program.removeprefix('examples/')})", page)


class Pages(unittest.TestCase):
    def test_the_catalogue_and_the_prices_are_written_from_their_data(self):
        for program in ("generate", "plot"):
            checked = subprocess.run([DOCS / "stores" / program, "--check"], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_policies_are_json_and_quoted_as_they_are(self):
        policies = {path.name: path.read_text() for path in (DOCS / "iam").glob("*.json")}
        self.assertTrue(policies)
        for name, text in policies.items():
            self.assertIsInstance(json.loads(text), dict, name)
        quoted = re.findall(r"^```json\n(.*?)^```", (DOCS / "permissions.md").read_text(), re.M | re.S)
        self.assertTrue(quoted)
        for block in quoted:
            self.assertIn(block, policies.values())

    def test_the_role_for_leases_has_the_verbs_of_an_elector(self):
        role, binding = yaml.safe_load_all((DOCS / "iam/kubernetes-elector.yaml").read_text())
        rules = role["rules"]
        self.assertTrue(all(rule["apiGroups"] == ["coordination.k8s.io"] and rule["resources"] == ["leases"] for rule in rules))
        self.assertEqual(sorted(verb for rule in rules for verb in rule["verbs"]), ["create", "get", "update"])
        self.assertEqual(binding["roleRef"]["name"], role["metadata"]["name"])

    def test_every_json_block_is_json(self):
        for page in DOCS.glob("*.md"):
            for block in re.findall(r"^```json\n(.*?)^```", page.read_text(), re.M | re.S):
                json.loads(block)

    def test_the_book_has_every_page_once(self):
        linked = re.findall(r"\]\(([^)]+)\)", (DOCS / "SUMMARY.md").read_text())
        chapters = [(DOCS / link).resolve() for link in linked]
        self.assertEqual(len(chapters), len(set(chapters)))
        self.assertLessEqual(set(DOCS.glob("*.md")) - {DOCS / "SUMMARY.md"}, set(chapters))

    def test_links_lead_somewhere(self):
        for page in pages():
            for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                self.assertTrue(target.exists(), f"{page.name}: {link}")
                if anchor:
                    self.assertIn(anchor, anchors(target), f"{page.name}: {link}")

    def test_each_feature_of_a_lock_has_a_test_or_a_reason(self):
        rows = table(DOCS / "library.md", "## What goes together")
        self.assertGreater(len(rows), 12)
        for feature, *cells in rows:
            self.assertEqual(len(cells), 4, feature)
            for cell in cells:
                self.assertRegex(cell, r"\.rs#\w+\)|^[A-Z].*\.$", f"{feature}: the cell needs the link of a test or a sentence")

    def test_the_log_says_what_the_page_says(self):
        text = sources(*LOGGING)
        messages = [message for _, message in quoted_messages()]
        self.assertGreater(len(messages), 60)
        self.assertEqual(messages, sorted(messages, key=str.lower))
        for message in messages:
            self.assertIn(message.removesuffix("…"), text)

    def test_the_page_says_what_the_log_says(self):
        logged = set(log_messages(sources(*LOGGING)))
        self.assertGreater(len(logged), 15)
        documented = []
        for level, message in quoted_messages():
            if level in LOUD:
                beginning = message.removesuffix("…")
                is_meant = str.startswith if beginning != message else str.__eq__
                meant = [each for each in logged if each[0] == level and is_meant(each[1], beginning)]
                self.assertEqual(len(meant), 1, (level, message))
                documented += meant
        self.assertEqual(sorted(documented), sorted(logged), "each message stands on the page once")

    def test_errors_are_quoted_as_they_are(self):
        text = sources(*LOGGING)
        quotes = quoted_first((DOCS / "trouble.md").read_text())
        self.assertGreater(len(quotes), 15)
        for message in quotes:
            self.assertIn(message.removesuffix("…"), text)

    def test_trouble_begins_with_what_to_ask(self):
        page = (DOCS / "trouble.md").read_text()
        first = "\n".join(page.splitlines()[:15])
        for question in ("Who leads?", "Nobody leads?", "The leader flaps?", "Two leaders?"):
            self.assertRegex(first, rf"(?m)^\| {re.escape(question)} \| (`leaderelect .*URL`|the same) \| `?\w")
        # What the program prints, with anything where it fills something in.
        printed = [re.sub(r"\{[^}]*\}", "\0", each) for each in re.findall(r'"((?:[^"\\]|\\.)*)"', sources("cli/src"))]
        printed = [re.escape(each).replace("\0", ".*") for each in printed if re.search(r"\w{4}", each)]
        answers = [answer for row in re.findall(r"^\| .*$", first, re.M) for answer in code(row.split("|")[3])]
        self.assertGreater(len(answers), 3)
        for answer in answers:
            said = answer.split(" (")[0]
            self.assertTrue(any(re.fullmatch(each, said) for each in printed), f"no command prints {said!r}")

    def test_reasons_are_those_of_the_source(self):
        names = re.search(r"OF_TERMS: &\[&str\] = &\[(.*?)\];", sources("leaderelection/src/term"), re.S)[1]
        reasons = set(re.findall(r'"(\w+)"', names))
        enum = re.search(r"pub enum TermEndReason \{(.*?)^\}", sources("leaderelection/src/term"), re.M | re.S)[1]
        variants = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in re.findall(r"^    (\w+)", enum, re.M)}
        # A history has these of terms of others.
        self.assertEqual(variants - {"released", "expired", "other"}, reasons)
        self.assertEqual(set(quoted_first(section(DOCS / "trouble.md", "## The leader flaps"))), reasons)


# A sentence with this number of words is too long.
LONG = 40

# The book may have this number of words: what is added takes the place of something.
BOOK = 37_000


class English(unittest.TestCase):
    def test_sentences_are_short(self):
        read = [(page, sentence) for page in pages() for sentence in english.sentences(page.read_text())]
        self.assertGreater(len(read), 1000)
        long = [
            f"{page.relative_to(ROOT)}: {length} words: {sentence}"
            for page, sentence in read
            if (length := len(english.words(sentence))) >= LONG
        ]
        self.assertFalse(bool(long), f"split these sentences, which have {LONG} words or more:\n" + "\n".join(long))

    def test_the_book_does_not_grow(self):
        book = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
        book += [*DOCS.glob("*.md"), *(ROOT / "deploy").glob("*.md")]
        self.assertGreater(len(book), 30)
        words = sum(len(page.read_text().split()) for page in book)
        self.assertLessEqual(words, BOOK, "cut as many words as you add")

    def test_sentences_are_told_apart(self):
        page = """# A heading

A sentence with `code. More code`, e.g. this, of 1.5 lines. `Code` begins
another (and ends it.) "Does a [link](https://example.org/a.b)?" Returns ... something.
kubert is a name. Is "why?" a question (or not?) in it?

- An item
- **Another.** And more

| a | cell. Two |
|---|---|
| b | c |

```text
Not a sentence.
```
"""
        self.assertEqual(
            list(english.sentences(page)),
            [
                "A heading",
                "A sentence with CODE CODE CODE, e.g this, of 1.5 lines.",
                "CODE begins another (and ends it.)",
                '"Does a link?"',
                "Returns ... something.",
                "kubert is a name.",
                'Is "why?" a question (or not?) in it?',
                "An item",
                "Another.",
                "And more",
                "a",
                "cell.",
                "Two",
                "b",
                "c",
            ],
        )
        self.assertEqual(len(english.words("A – or “two” lock-free `words`?")), 5)


if __name__ == "__main__":
    unittest.main()
