"""A healthy node into whose link somebody else sends while it is measured: nobody may be named for it, or drained."""

import contextlib
import pathlib

import pytest
from conftest import CHECK, NODES, SPARE, until

DRAINS = '[threshold]\nmin = "80Mbps"\n[action]\naction = "requeue"\ndrain = true\nmax_actions_per_hour = 0\n'
FLOOD = pathlib.Path(__file__).with_name("flood.py").read_text()


@contextlib.contextmanager
def flood(cluster, target, megabits):
    """Bob has a node of his own beside the job."""
    address = cluster.exec("ctl", "getent", "hosts", target).stdout.split()[0]
    bob = cluster.start(SPARE, "python3", "-c", FLOOD, address, str(megabits), user="bob")
    try:
        assert bob.stdout.readline() == "ready\n"
        yield
    finally:
        cluster.exec(SPARE, "pkill", "-u", "bob", check=False)
        bob.communicate(timeout=30)


@pytest.mark.parametrize("megabits", [50, 95])
def test_a_node_that_somebody_sends_to_is_not_named(cluster, megabits):
    cluster.configure(DRAINS)
    for node in [*NODES, SPARE]:
        cluster.script("shape", node, "100mbit")
    told = 0
    for _ in range(2):
        with flood(cluster, "n3", megabits):
            job = cluster.sbatch("--netcheck", nodes=4)
            assert job.wait() == "COMPLETED"
        comment = job.comment()
        assert comment and "slow=" not in comment and " drain=" not in comment, comment
        told += "n3's devices carried other traffic" in comment
    until(lambda: not cluster.processes("n3", CHECK), "the end of the check", cluster)
    assert told > 0
