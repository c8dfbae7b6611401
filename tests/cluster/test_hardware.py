"""What is wrong with the nodes' hardware, as a check names it before it measures. A node's link can be given another MTU here; the speed of
veth means nothing and is unknown to the check, so that no limit is known in this cluster, and nothing may come of that.
"""

import contextlib
import json

from conftest import CONFIG, run

OTHER_MTU = "1400"


@contextlib.contextmanager
def other_mtu(cluster, node, rails=(0, 1)):
    """The node's links take smaller packets than those of the others, until the block ends."""
    before = {rail: cluster.exec(node, "cat", f"/sys/class/net/eth{rail}/mtu").stdout.strip() for rail in rails}
    try:
        for rail in rails:
            cluster.exec(node, "ip", "link", "set", f"eth{rail}", "mtu", OTHER_MTU)
        yield
    finally:
        for rail, mtu in before.items():
            cluster.exec(node, "ip", "link", "set", f"eth{rail}", "mtu", mtu)


def findings(job):
    return job.record("n1")["judged"]["hardware"]["findings"]


def test_nodes_that_are_alike_have_no_findings_and_no_limit(cluster):
    job = cluster.sbatch("--netcheck")
    assert job.wait() == "COMPLETED"
    assert findings(job) == []
    assert "odd-" not in job.comment() and "limit" not in job.comment()
    record = job.record("n1")
    assert record["judged"]["hardware"]["limit"]["counts"] is False
    assert all("hardware" in node for node in record["report"]["plan"]["nodes"])
    for node in ("n2", "n3", "n4"):  # each has in its own record what it said of itself
        assert {trait["key"] for trait in job.record(node)["report"]["hardware"]["traits"]} >= {"MTU"}


def test_the_node_with_another_mtu_is_named(cluster):
    with other_mtu(cluster, "n3"):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    found = findings(job)
    assert [(one["code"], one["severity"], one["nodes"]) for one in found] == [("odd-mtu", "warn", ["n3"])]
    assert found[0]["what"] == "n3 has MTU 2 × 1400, the other 3 nodes 2 × 1500"
    assert "warn=n3(odd-mtu: 2x1400, others 2x1500)" in job.comment()
    assert job.comment().startswith(("netcheck=pass", "netcheck=inconclusive")), job.comment()


def test_rails_of_a_node_that_differ_are_its_own_finding(cluster):
    with other_mtu(cluster, "n2", rails=(1,)):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    assert [(one["code"], one["nodes"]) for one in findings(job)] == [("mtu-uneven", ["n2"])]
    assert "n2(mtu-uneven: eth1)" in job.comment()


def test_two_nodes_that_differ_blame_neither(cluster):
    with other_mtu(cluster, "n1"):
        job = cluster.sbatch("--netcheck", "-w", "n1,n2", nodes=2)
        assert job.wait() == "COMPLETED"
    assert [(one["code"], one["nodes"]) for one in findings(job)] == [("odd-mtu", [])]
    assert "odd-mtu(nodes differ)" in job.comment()


def test_a_site_that_ignores_it_hears_nothing(cluster):
    cluster.configure(CONFIG + '[findings]\nodd_mtu = "ignore"\n')
    with other_mtu(cluster, "n3"):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    assert findings(job) == [] and "odd-mtu" not in job.comment()


def test_a_site_that_fails_it_sends_the_job_elsewhere_and_drains_nobody(cluster):
    rule = '[[rule]]\npartition = "main"\nodd_mtu = "fail"\naction = "requeue"\ndrain = true\n'
    cluster.configure(CONFIG + "[action]\nmax_actions_per_hour = 0\n" + rule)
    with other_mtu(cluster, "n3"):
        job = cluster.sbatch("--netcheck", "-p", "main", nodes=4)
        assert job.wait(timeout=90) == "COMPLETED"
    done = cluster.exec("ctl", "sacct", "-n", "-P", "-X", "-D", "-j", job.number, "-o", "State,AdminComment,NodeList")
    runs = done.stdout.strip().splitlines()
    assert len(runs) == 2, runs
    assert runs[0].startswith("REQUEUED|") and "netcheck=fail " in runs[0], runs
    assert " bad=n3(odd-mtu: 2x1400, others 2x1500)" in runs[0] and "action=requeue" in runs[0], runs
    assert " drain=" not in done.stdout
    nodes = cluster.exec("ctl", "scontrol", "show", "hostnames", runs[1].rpartition("|")[2]).stdout.split()
    assert nodes == ["n1", "n2", "n4", "n5"]
    assert " prev=fail(bad=n3)" in job.comment()
    cluster.prologs_end()  # the helper of the requeue as well


def test_a_record_with_hardware_is_judged_again_alike(cluster, stage, tmp_path):
    cluster.configure(CONFIG + '[findings]\nodd_mtu = "fail"\n')
    with other_mtu(cluster, "n3"):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    record = job.record("n1")
    file = tmp_path / "record.json"
    file.write_text(json.dumps(record))
    done = run(stage / "sbin/netcheck", "replay", file, check=False)
    assert done.returncode == 1, done.stderr
    assert " bad=n3(odd-mtu: 2x1400, others 2x1500)" in done.stdout
    assert done.stdout.split(" time=")[0] == record["line"].split(" time=")[0]


def test_a_fraction_of_an_unknown_limit_decides_nothing(cluster):
    cluster.configure("[threshold]\nmin_fraction = 1\nmin_fraction_per_rail = 1\n")
    job = cluster.sbatch("--netcheck")
    assert job.wait() == "COMPLETED"
    assert not job.comment().startswith("netcheck=fail") and "limit=" not in job.comment()
    limit = job.record("n1")["judged"]["hardware"]["limit"]
    assert limit["counts"] is False and "is not known" in limit["why"]
