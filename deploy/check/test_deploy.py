"""Holds the deployment files and the workflows against the source that they talk about. Run by deploy/check/run."""

import os
import re
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


def manifests():
    for name in kustomization()["resources"]:
        yield from yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text())


def kustomization():
    return yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())


def containers():
    for manifest in manifests():
        pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "Deployment" else {}
        yield from pod.get("initContainers", []) + pod.get("containers", [])


class Deployment(unittest.TestCase):
    def test_options_are_those_of_the_command(self):
        # The builder's own options are not those of leaderelect.
        units = re.findall(r"leaderelect (?:serve|run) .*", text_of("deploy/systemd/*.service"))
        arguments = [argument for container in containers() for argument in container.get("args", [])]
        options = set(re.findall(r"--([a-z][a-z-]+)", " ".join(units + arguments)))
        self.assertLessEqual({"probe-listen", "campaign", "notify", "once-for"}, options)
        source = "\n".join(path.read_text() for path in (ROOT / "cli/src").rglob("*.rs"))
        for option in options:
            self.assertRegex(source, rf"(?m)#\[arg\(long.*\)\]\n\s+(?:pub\S* )?{option.replace('-', '_')}:", option)

    def test_probes_ask_for_what_is_served(self):
        probes = [probe["httpGet"] for container in containers() for key, probe in container.items() if "Probe" in key]
        self.assertEqual(len(probes), 3)
        served = re.findall(r'\.route\("(/\w*)"', (ROOT / "cli/src/serve/site.rs").read_text())
        for probe in probes:
            self.assertIn(probe["path"], served)

    def test_the_probes_ask_where_the_sidecar_listens(self):
        sidecar, = [container for container in containers() if container["name"] == "leaderelect"]
        listen = sidecar["args"][sidecar["args"].index("--probe-listen") + 1]
        port, = sidecar["ports"]
        self.assertEqual(listen, f"0.0.0.0:{port['containerPort']}")
        self.assertEqual({probe["httpGet"]["port"] for key, probe in sidecar.items() if "Probe" in key}, {port["name"]})

    def test_the_kustomization_names_what_is_there(self):
        images = {container["image"] for container in containers()}
        self.assertEqual({image["name"] for image in kustomization()["images"]}, images)
        maps = {source["configMapRef"]["name"] for container in containers() for source in container.get("envFrom", [])}
        self.assertEqual({generated["name"] for generated in kustomization()["configMapGenerator"]}, maps)
        for generated in kustomization()["configMapGenerator"]:
            self.assertTrue(all(literal.startswith("LEADERELECT_") for literal in generated["literals"]))

    def test_every_container_is_as_powerless_as_can_be(self):
        for container in containers():
            rights = container["securityContext"]
            self.assertEqual(rights["allowPrivilegeEscalation"], False, container["name"])
            self.assertEqual(rights["readOnlyRootFilesystem"], True, container["name"])
            self.assertEqual(rights["capabilities"], {"drop": ["ALL"]}, container["name"])
            self.assertIn("memory", container["resources"]["limits"], container["name"])

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

    def test_dependabot_looks_where_something_is(self):
        updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
        files = {"cargo": "Cargo.lock", "docker": "Containerfile", "github-actions": ".github", "npm": "package.json", "pip": "*.txt"}
        for update in updates:
            for directory in update.get("directories") or [update["directory"]]:
                found = (ROOT / directory.strip("/")).glob(files[update["package-ecosystem"]])
                self.assertTrue(any(found), f"{update['package-ecosystem']} in {directory}")


if __name__ == "__main__":
    unittest.main()
