"""Tests of the comparison of raw answers, without servers."""

import unittest

from .accepted import ACCEPTED
from .cases import scenarios
from .compare import Accepted, compare, hidden
from .server import Memory


def answer(status, **body):
    return {"status": status, "headers": {}, "body": body}


class Answers(unittest.TestCase):
    def test_a_difference_without_a_name_is_found(self):
        accepted = [Accepted("texts", "people read them", "/body/message")]
        self.assertEqual(compare("a", answer(200, message="b"), answer(200, message="c"), accepted), ([], {"texts"}))
        unknown, names = compare("a", answer(200, kind="b"), answer(200, message="c"), accepted)
        self.assertEqual(([place for place, _, _ in unknown], names), (["/body/kind"], {"texts"}))
        accepted = [Accepted("YAML", "nobody reads it", "/status", request="^GET .*yaml", ours="^406")]
        for request, unknown in (("GET /a None yaml", 0), ("GET /a None json", 1), ("PUT /a {} yaml", 1)):
            self.assertEqual(len(compare("a", answer(200), answer(406), accepted, request)[0]), unknown, request)
            self.assertEqual(list(hidden("a", answer(200), accepted, request)), [] if unknown else [406])
        accepted = [Accepted("texts", "people read them", "/body/message")]
        self.assertEqual(compare("a", answer(201), answer(409, reason="Conflict"), accepted)[0], [("/status", "201", "409 Conflict")])

    def test_versions_uids_and_times_of_two_servers_are_the_same(self):
        def shown(uid, version, time):
            metadata = {"name": "a-scenario", "uid": uid, "resourceVersion": version, "creationTimestamp": time}
            memory = Memory("a scenario")
            taken = memory.take((201, {}, '{"kind":"Lease","metadata":' + str(metadata).replace("'", '"') + "}"))
            return taken, memory.filled(("GET", "{leases}/{lease}?resourceVersion={version}", None, {}))[1].count(version)

        one = shown("0" * 8 + "-0000-0000-0000-" + "0" * 12, "123", "2026-01-01T00:00:00Z")
        other = shown("1" * 8 + "-0000-0000-0000-" + "0" * 12, "abc", "2026-01-02T00:00:00Z")
        self.assertEqual(one, other)
        self.assertEqual(one[1], 1)

    def test_there_are_enough_requests_and_no_two_differences_of_one_name(self):
        self.assertGreater(sum(len(steps) for steps in scenarios().values()), 300)
        self.assertEqual(len({each.name for each in ACCEPTED}), len(ACCEPTED))


if __name__ == "__main__":
    unittest.main()
