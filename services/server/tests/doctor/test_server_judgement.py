"""What the doctor says of nodes and their keys."""

import pytest

from bothy_server.doctor.finding import Verdict
from bothy_server.doctor.server_judgement import Told, node_keys


def told(node_id, *key_ids, signs_with="a", serves=True):
    return Told(node_id, key_ids, signs_with, None, serves)


@pytest.mark.parametrize(
    ("nodes", "verdict", "seen"),
    [
        ([told("n1", "a", "b"), told("n2", "b", "a")], Verdict.OK, "2 keys on 2 nodes, which sign with a"),
        (
            [told("n1", "a", "b"), told("n2", "a", "b", signs_with="b")],
            Verdict.OK,
            "2 keys on 2 nodes, which sign with a, b",
        ),
        ([told("n1", "a", "b"), told("n2", "a")], Verdict.FAILED, "node n2 lacks b"),
        ([told("n1", "a", "b", "c")], Verdict.FAILED, "node n1 has what this machine lacks or retired: c"),
        (
            [told("n1", "c"), told("n2", "a")],
            Verdict.FAILED,
            "node n1 lacks a, b; node n1 has what this machine lacks or retired: c; node n2 lacks b",
        ),
        ([told("w", serves=False)], Verdict.UNSEEN, "no node lives"),
        ([told("n1", "a", "b"), told("w", serves=False)], Verdict.OK, "2 keys on 1 nodes, which sign with a"),
    ],
)
def test_it_names_the_node_and_the_key_that_differs(nodes, verdict, seen):
    found = node_keys(("a", "b"), nodes)
    assert (found.verdict, found.seen) == (verdict, seen)
