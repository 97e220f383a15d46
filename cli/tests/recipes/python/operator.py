"""An operator that says when it works."""

import os

import kopf


def say(word):
    with open(os.environ["OPERATOR_LOG"], "a") as log:
        log.write(f"{os.environ['LEADERELECTION_IDENTITY']} {word}\n")


@kopf.on.startup()
def started(**_):
    say("works")


@kopf.on.cleanup()
def ended(**_):
    say("has ended")
