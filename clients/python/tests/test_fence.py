"""The fence, with the vectors for all languages and with threads."""

import json
import threading
import unittest
from pathlib import Path

from leaderelect import Fence, StaleToken

VECTORS = json.loads((Path(__file__).resolve().parents[3] / "docs/fencing/vectors.json").read_text())


class Fences(unittest.TestCase):
    def test_vectors(self):
        for vector in VECTORS["sequences"]:
            fence = Fence()
            for step in vector["steps"]:
                with self.subTest(vector["name"], **step):
                    passes = True
                    try:
                        with fence.entered(step["token"]):
                            pass
                    except StaleToken as stale:
                        passes = False
                        self.assertEqual((stale.token, stale.highest), (step["token"], step["highest"]))
                    self.assertEqual((passes, fence.highest), (step["passes"], step["highest"]))

    def test_a_fence_begins_with_what_was_stored(self):
        with self.assertRaisesRegex(StaleToken, "fencing token 6 is stale, because 7 has been seen"):
            with Fence(7).entered(6):
                self.fail("it passed")

    def test_nobody_enters_during_the_block_of_another(self):
        fence, log = Fence(), []

        def successor():
            with fence.entered(6):
                log.append(6)

        thread = threading.Thread(target=successor)
        with fence.entered(5):
            thread.start()
            # Nobody passes without this lock.
            self.assertFalse(fence._lock.acquire(blocking=False))
            self.assertEqual((log, fence.highest), ([], 5))
        thread.join()
        self.assertEqual((log, fence.highest), ([6], 6))

    def test_an_error_in_the_block_leaves_the_fence_open_for_others(self):
        fence = Fence()
        with self.assertRaises(ValueError):
            with fence.entered(5):
                raise ValueError
        with fence.entered(5):
            self.assertEqual(fence.highest, 5)
