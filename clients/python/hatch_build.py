"""Puts the program into the wheel. LEADERELECT_PROGRAM is its path, and LEADERELECT_PLATFORM the tag of its platform."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Program(BuildHookInterface):
    def initialize(self, version, build_data):
        if version == "editable":
            return
        program = os.environ["LEADERELECT_PROGRAM"]
        suffix = ".exe" if program.endswith(".exe") else ""
        build_data["shared_scripts"][program] = f"leaderelect{suffix}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['LEADERELECT_PLATFORM']}"
