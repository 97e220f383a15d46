"""Holds the deployment files and the workflows against the source that they talk about. Run by deploy/check/run."""

import json
import os
import re
import runpy
import subprocess
import tomllib
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def text_of(*patterns):
    """The text of all files that match, without comments."""
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    assert paths, patterns
    return "\n".join(re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.M) for path in paths)


SIDECAR = DEPLOY / "kubernetes/sidecar.yaml"
OPERATOR = ROOT / "examples/operator/kubernetes.yaml"


def kustomization():
    return yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())


def containers(*files):
    for manifest in (manifest for file in files for manifest in yaml.safe_load_all(file.read_text())):
        pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "Deployment" else {}
        yield from pod.get("initContainers", []) + pod.get("containers", [])


class Deployment(unittest.TestCase):
    def test_options_are_those_of_the_command(self):
        # The builder's own options are not those of leaderelect.
        units = re.findall(r"leaderelect (?:serve|run|lease-api) .*", text_of("deploy/systemd/*.service"))
        arguments = [argument for container in containers(SIDECAR) for argument in container.get("args", [])]
        options = set(re.findall(r"--([a-z][a-z-]+)", " ".join(units + arguments)))
        self.assertLessEqual({"probe-listen", "campaign", "notify", "job-id"}, options)
        source = "\n".join(path.read_text() for path in (ROOT / "cli/src").rglob("*.rs"))
        for option in options:
            self.assertRegex(source, rf"(?m)#\[arg\(long.*\)\]\n\s+(?:pub\S* )?{option.replace('-', '_')}:", option)

    def test_probes_ask_for_what_is_served_and_where(self):
        servers = [(SIDECAR, "leaderelect", "--probe-listen", 3, "cli/src/commands/serve/site.rs"),
                   (OPERATOR, "operator", "--listen", 2, "leaderelection/src/handle/probes.rs")]
        for file, name, option, count, source in servers:
            server, = [container for container in containers(file) if container["name"] == name]
            probes = [probe["httpGet"] for key, probe in server.items() if "Probe" in key]
            self.assertEqual(len(probes), count, name)
            served = re.findall(r'"(/\w*)"', (ROOT / source).read_text())
            for probe in probes:
                self.assertIn(probe["path"], served)
            port, = server["ports"]
            self.assertEqual(server["args"][server["args"].index(option) + 1], f"0.0.0.0:{port['containerPort']}")
            self.assertEqual({probe["port"] for probe in probes}, {port["name"]})

    def test_the_operator_elects_on_the_lease_that_its_role_names(self):
        operator, = containers(OPERATOR)
        elected_on, = [each["value"] for each in operator["env"] if each["name"] == "OPERATOR_ELECTED_ON"]
        role, = [each for each in yaml.safe_load_all(OPERATOR.read_text()) if each["kind"] == "Role"]
        names = {name for rule in role["rules"] for name in rule.get("resourceNames", [])}
        self.assertEqual({elected_on.rsplit("/", 1)[1]}, names)
        self.assertIn('env = "OPERATOR_ELECTED_ON"', (ROOT / "examples/operator/src/main.rs").read_text())

    def test_the_kustomization_names_what_is_there(self):
        images = {container["image"] for container in containers(SIDECAR)}
        self.assertEqual({image["name"] for image in kustomization()["images"]}, images)
        maps = {source["configMapRef"]["name"] for container in containers(SIDECAR) for source in container.get("envFrom", [])}
        self.assertEqual({generated["name"] for generated in kustomization()["configMapGenerator"]}, maps)
        for generated in kustomization()["configMapGenerator"]:
            self.assertTrue(all(literal.startswith("LEADERELECT_") for literal in generated["literals"]))

    def test_every_container_is_as_powerless_as_can_be(self):
        for container in containers(SIDECAR, OPERATOR):
            rights = container["securityContext"]
            self.assertEqual(rights["allowPrivilegeEscalation"], False, container["name"])
            self.assertEqual(rights["readOnlyRootFilesystem"], True, container["name"])
            self.assertEqual(rights["capabilities"], {"drop": ["ALL"]}, container["name"])
            self.assertIn("memory", container["resources"]["limits"], container["name"])

    def test_every_pod_is_behind_a_network_policy_that_lets_in_the_port_of_its_probes(self):
        for file in (SIDECAR, OPERATOR):
            manifests = list(yaml.safe_load_all(file.read_text()))
            for pod in (each["spec"]["template"]["metadata"]["labels"] for each in manifests if each["kind"] == "Deployment"):
                policy, = [each["spec"] for each in manifests if each["kind"] == "NetworkPolicy"
                           and each["spec"]["podSelector"]["matchLabels"].items() <= pod.items()]
                self.assertEqual(policy["policyTypes"], ["Ingress"], file)
                self.assertTrue(all(rule["from"] for rule in policy["ingress"]), file)
                ports = {port["name"] for container in containers(file) for port in container.get("ports", [])}
                self.assertEqual({port["port"] for rule in policy["ingress"] for port in rule["ports"]}, ports, file)

    def test_the_image_is_built_with_a_compiler_that_is_new_enough(self):
        def version(text):
            return tuple(int(part) for part in text.split("."))

        image = re.search(r"FROM rust:([\d.]+)", text_of("deploy/Containerfile"))[1]
        oldest = re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
        self.assertGreaterEqual(version(image), version(oldest)[: len(version(image))])


class Workflows(unittest.TestCase):
    def test_they_call_scripts_that_are_there(self):
        called = set(re.findall(r"\brun: (\.ci/\S+)", text_of(".github/workflows/*.yml")))
        self.assertIn(".ci/run", called)
        for script in called:
            self.assertTrue(os.access(ROOT / script, os.X_OK), script)

    def test_what_may_write_runs_no_code_of_a_build(self):
        jobs = {f"{path.stem}.{name}": job for path in sorted(ROOT.glob(".github/workflows/*.yml"))
                for name, job in yaml.safe_load(path.read_text())["jobs"].items()}
        writing = {name for name, job in jobs.items() if "write" in job["permissions"].values()}
        allowed = {
            "release.publish": (["actions/download-artifact", "actions/attest-build-provenance"], {"sha256sum", "gh"}),
            "deep.record": (["actions/download-artifact"], {"grep", "gh", "jq", "base64", "cat"}),
        }
        self.assertEqual(writing, allowed.keys())
        for name, (actions, programs) in allowed.items():
            steps = jobs[name]["steps"]
            self.assertEqual([step["uses"].split("@")[0] for step in steps if "uses" in step], actions)
            text = "\n".join(step.get("run", "").replace("\\\n", " ") for step in steps)
            commands = set(re.findall(r"(?:^|[|;{(] |\n)\s*([a-z0-9]+) ", text, re.M))
            self.assertLessEqual(commands, programs, f"{name}: nothing that a build has made is run")
        for name, job in jobs.items():
            self.assertNotIn("env", job, f"{name}: an environment of the whole job reaches every build script")
            for step in job["steps"]:
                has_token = "github.token" in str(step.get("env")) or "secrets." in str(step)
                self.assertEqual(has_token, name in allowed and step is job["steps"][-1], name)

    def test_the_line_of_a_deep_exploration_is_the_only_thing_that_is_recorded(self):
        line_of = runpy.run_path(str(ROOT / ".ci/deep"))["line_of"]
        said = [
            (1, "70 simulated hours in 3.0 s, 8 seeds: 9 requests\nviolated: Exclusion seed: 3\n"),
            (0, "late requests: 1200 states, 9 steps deep, 0.1 s\nlate requests: never a late write\n"),
            (0, "record: 8000 inputs in 3 s, 7 kept\nurl: 1000 inputs in 3 s, 7 kept\n"),
            (-9, ""),
        ]
        line = line_of("2026-11-23", "fb4313b", 7_000_000, said, 90)
        self.assertEqual(line, "| 2026-11-23 | fb4313b | 2 min | 70 h | 7000000 and 8 more | 1 200 | 9 000 | "
                               "Exclusion seed: 3; never a late write; 1 programs ended early |")
        hostile = [(1, "violated: $(id) | `id` <script> " + "x" * 300 + "\n")]
        record = yaml.safe_load((ROOT / ".github/workflows/deep.yml").read_text())["jobs"]["record"]["steps"][-1]["run"]
        [row] = re.findall(r"grep .* '(.*)' line.md", record)
        for words in (line, line_of("2026-11-23", "fb4313b", 0, hostile, 90)):
            self.assertRegex(words, f"^{row}$")
        for words in ("| a | b |", line.replace("none", "x").replace("70 h", "[a](b)")):
            self.assertNotRegex(words, f"^{row}$")

    def test_an_advisory_that_is_ignored_concerns_nothing_that_is_published(self):
        published = [line.split()[0] for line in subprocess.check_output([ROOT / ".ci/published"], text=True).splitlines()]
        options = [option for crate in published for option in ("--package", crate)]
        tree = subprocess.check_output(
            ["cargo", "tree", "--locked", "--all-features", "--edges=normal,build", "--target=all", "--prefix=none",
             "--format={p}", *options], text=True, cwd=ROOT)
        present = {line.split()[0] for line in tree.splitlines() if line}
        self.assertIn("tokio", present)
        for ignored in tomllib.loads((ROOT / "deny.toml").read_text())["advisories"]["ignore"]:
            crate, reason = ignored["reason"].split(": ", 1)
            self.assertIn(f'name = "{crate}"', (ROOT / "Cargo.lock").read_text(), "the line can go")
            self.assertTrue(reason)
            self.assertNotIn(crate, present)

    def test_what_is_published_has_one_version_and_one_licence(self):
        package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
        client = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
        self.assertEqual((client["version"], client["license"]), (package["version"], package["license"]))
        metadata = json.loads(subprocess.check_output(
            ["cargo", "metadata", "--no-deps", "--locked", "--format-version=1"], text=True, cwd=ROOT))
        folders = {crate["name"]: (crate, Path(crate["manifest_path"]).parent) for crate in metadata["packages"]}
        for line in subprocess.check_output([ROOT / ".ci/published"], text=True).splitlines():
            crate, folder = folders[line.split()[0]]
            self.assertEqual(crate["license"], package["license"], crate["name"])
            self.assertTrue(crate["description"] and crate["readme"] and crate["keywords"] and crate["categories"], crate["name"])
            self.assertEqual((folder / "LICENSE").read_text(), (ROOT / "LICENSE").read_text(), crate["name"])

    def test_nothing_is_published_while_the_address_is_unknown(self):
        package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
        if not package["repository"].startswith("https://leaderelection.invalid/"):
            self.skipTest("the address is known")
        release = subprocess.run([ROOT / ".ci/release", f"v{package['version']}", "--publish"], text=True, capture_output=True)
        self.assertEqual(release.returncode, 1, release.stdout)
        self.assertIn("is a placeholder; set it in [workspace.package] of Cargo.toml", release.stderr)

    def test_dependabot_looks_wherever_something_is(self):
        updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
        files = {"cargo": "Cargo.lock", "docker": "Containerfile", "gomod": "go.mod", "maven": "pom.xml", "npm": "package.json", "pip": "*.txt"}
        tracked = [Path(path) for path in subprocess.check_output(["git", "ls-files"], text=True, cwd=ROOT).splitlines()]
        for ecosystem, name in files.items():
            # A requirements file of ours has hashes.
            wanted = {path.parent for path in tracked if path.match(name) and (name != "*.txt" or "--hash=" in (ROOT / path).read_text())}
            watched = [update for update in updates if update["package-ecosystem"] == ecosystem]
            folders = [folder for update in watched for folder in update.get("directories") or [update["directory"]]]
            self.assertEqual(sorted(folders), sorted("/" + str(folder).removeprefix(".") for folder in wanted), ecosystem)
        self.assertIn("github-actions", [update["package-ecosystem"] for update in updates])


if __name__ == "__main__":
    unittest.main()
