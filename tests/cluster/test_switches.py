"""A node that is its job's only one behind a trunk: what fills the trunk is not told from what is wrong with the node, so where the
site's topology.conf says which nodes share a leaf switch, nobody is drained and no job refused for it."""

import pytest
from actions import blamed, config, drained_by_us, narrow_trunk, runs

# n1 to n3 are on one side of the trunk, n4 and n5 on the other.
LEAVES = "SwitchName=leaf1 Nodes=n[1-3]\nSwitchName=leaf2 Nodes=n[4-5]\nSwitchName=spine Switches=leaf[1-2]\n"


@pytest.fixture
def topology(cluster):
    file = cluster.folder / "etc/slurm/topology.conf"  # beside slurm.conf, for netcheck alone: Slurm reads it when it starts
    yield file
    file.unlink(missing_ok=True)
    cluster.prologs_end()
    for node in ("n3", "n4"):
        cluster.exec("ctl", "scontrol", "update", f"NodeName={node}", "Reason=", check=False)
        cluster.exec("ctl", "scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
    cluster.wait_idle()


def behind_the_trunk(cluster, want):
    with narrow_trunk(cluster, "150mbit"):
        return blamed(cluster, lambda: cluster.sbatch("--netcheck", "-p", "main", "-x", "n1,n5", nodes=3), want=want)


def test_without_a_word_on_switches_it_is_taken_for_the_node(cluster, topology):
    cluster.configure(config(action="cancel", drain=True, max_drained_total=5))
    job = behind_the_trunk(cluster, r" slow=n4\(.* action=cancel drain=n4 ")
    assert runs(job)[-1]["State"].startswith("CANCELLED")
    assert drained_by_us(cluster) == {"n4"}


def test_a_node_alone_on_its_switch_is_not_drained_and_its_job_runs(cluster, topology):
    topology.write_text(LEAVES)
    cluster.configure(config(action="cancel", drain=True, max_drained_total=5))
    job = behind_the_trunk(cluster, r" slow=n4\(.* action=annotate .*-switch")
    assert job.wait() == "COMPLETED"
    assert job.comment().endswith(
        " action=annotate wanted=cancel brake=between-switches drain_brake=n4:alone-on-its-switch"), job.comment()
    assert drained_by_us(cluster) == set()


def test_one_that_is_slow_within_its_switch_too_is(slow, topology):
    topology.write_text(LEAVES)
    slow.configure(config(action="cancel", drain=True, max_drained_total=5))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", "-p", "main", "-x", "n5", nodes=4), want=" action=cancel drain=n3 ")
    assert runs(job)[-1]["State"].startswith("CANCELLED")
