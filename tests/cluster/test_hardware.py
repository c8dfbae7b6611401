"""What is wrong with the nodes' hardware, as a check names it before it measures. A node's link can be given another MTU here; the speed of
veth means nothing and is unknown to the check, so that no limit is known in this cluster, and nothing may come of that.
"""

import contextlib
import json
import struct
import subprocess

import pytest
from conftest import CONFIG, NODES, TOP, run, until
from test_compromised import SWAP, TREE

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
        job = cluster.sbatch("--netcheck", "-p", "main", nodes=4, script="echo ran on $SLURM_JOB_NODELIST")
        assert job.wait(timeout=90) == "COMPLETED"
    done = cluster.exec("ctl", "sacct", "-n", "-P", "-X", "-D", "-j", job.number, "-o", "State,AdminComment")
    runs = done.stdout.strip().splitlines()
    assert len(runs) == 2, runs
    assert runs[0].startswith("REQUEUED|") and "netcheck=fail " in runs[0], runs
    assert " bad=n3(odd-mtu: 2x1400, others 2x1500)" in runs[0] and "action=requeue" in runs[0], runs
    assert " drain=" not in done.stdout
    job.wait_text(r"ran on n\[1-2,4-5\]")
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
    assert record["line"].startswith(done.stdout.strip()), (record["line"], done.stdout)
    assert record["request"] == ""  # of a bare --netcheck


def test_a_fraction_of_an_unknown_limit_decides_nothing(cluster):
    cluster.configure("[threshold]\nmin_fraction = 1\nmin_fraction_per_rail = 1\n")
    job = cluster.sbatch("--netcheck")
    assert job.wait() == "COMPLETED"
    assert not job.comment().startswith("netcheck=fail") and "limit=" not in job.comment()
    limit = job.record("n1")["judged"]["hardware"]["limit"]
    assert limit["counts"] is False and "is not known" in limit["why"]


# --- other machines than this one -------------------------------------------------------------------------------------------------
#
# A probe has the program that it was started as look at the hardware. It is made to take a script for itself, by a library that tells
# it another name for its own: the script gives it the machine that stands there for its node, or does worse.

STANDS_IN = f"""#!/bin/sh
case $1 in
  look) . {TREE}/look/$(hostname) ;;
  probe) export LD_PRELOAD={TREE}/swap.so ;;
esac
exec {TREE}/sbin/netcheck "$@"
"""


def cbor(value):
    """As RFC 8949 has it, of what JSON can hold."""

    def head(major, count):
        if count < 24:
            return bytes([major << 5 | count])
        size = next(size for size in range(4) if count < 1 << (8 << size))
        return bytes([major << 5 | 24 + size]) + count.to_bytes(1 << size, "big")

    if isinstance(value, bool):
        return bytes([0xF5 if value else 0xF4])
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(key) + cbor(one) for key, one in value.items())


@pytest.fixture
def machines(cluster, tmp_path):
    """Gives what puts a recorded machine of eight GPUs in each node's place, changed by `change(machine)` for some; or what
    `instead` says that the look does there."""
    source = tmp_path / "swap.c"
    source.write_text(SWAP)
    root = cluster.folder / "root"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", root / "swap.so", source], check=True)
    for name, text in (
        ("sbin/taken-over", STANDS_IN),
        ("swapped", f'#!/bin/sh\nLD_PRELOAD={TREE}/swap.so exec {TREE}/sbin/netcheck "$@"\n'),
    ):
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    (root / "look").mkdir(exist_ok=True)

    def stand_in(instead=None, **change):
        for node in NODES:
            machine = json.loads((TOP / "tests/fixtures/topology/hgx.json").read_text())
            change.get(node, lambda machine: None)(machine)
            (root / f"look/{node}.machine").write_bytes(cbor({"machine": machine}))
            does = (instead or {}).get(node, f"cat {TREE}/look/{node}.machine >&3; exit 0")
            (root / f"look/{node}").write_text(does + "\n")
        return cluster.plugged(*NODES, program=f"{TREE}/swapped")

    yield stand_in
    for name in ("sbin/taken-over", "swapped", "swap.so"):
        (root / name).unlink(missing_ok=True)


def lose_a_gpu(machine):
    machine["gpus"].pop()
    machine["nvlinks"].pop()


def lose_a_port(machine):
    machine["ports"][3] |= {"state": "down", "state_text": "1: DOWN"}


def slow_a_port(machine):
    machine["ports"][3]["rate"] = 200e9


def test_the_node_that_lacks_a_gpu_is_named(cluster, machines):
    with machines(n3=lose_a_gpu):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    assert [(one["code"], one["nodes"], one["what"]) for one in findings(job)] == [
        ("odd-gpus", ["n3"], "n3 has 7 GPUs, the other 3 nodes 8")
    ]
    assert "warn=n3(odd-gpus: 7, others 8)" in job.comment()


def test_what_all_nodes_lack_the_site_misses(cluster, machines):
    cluster.configure(CONFIG + "[[rule]]\nnodes = 4\ngpus = 8\nports = 8\n")
    with machines(n1=lose_a_gpu, n2=lose_a_gpu, n3=lose_a_gpu, n4=lose_a_gpu):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    assert [(one["code"], one["nodes"]) for one in findings(job)] == [("gpus-missing", ["n1", "n2", "n3", "n4"])]
    assert "warn=n[1-4](gpus-missing: 7of8)" in job.comment()


def test_a_port_at_a_lower_rate_is_named_by_its_node(cluster, machines):
    with machines(n2=slow_a_port):
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
    assert [(one["code"], one["nodes"]) for one in findings(job)] == [("port-slow", ["n2"])]
    assert findings(job)[0]["what"] == "n2: mlx5_3 runs at 200 Gb/s of 400 Gb/s"
    assert "warn=n2(port-slow: mlx5_3)" in job.comment()


@pytest.mark.parametrize("drain", [False, True])
def test_a_broken_port_may_fail_a_check_and_drain_its_node(cluster, machines, drain):
    rules = f"[action]\nmax_actions_per_hour = 0\ndrain = {str(drain).lower()}\n"
    cluster.configure(CONFIG + '[findings]\nport_down = "fail"\n' + rules)
    try:
        for _ in range(3):
            with machines(n3=lose_a_port):
                job = cluster.sbatch("--netcheck")
                assert job.wait() == "COMPLETED"
            assert job.comment().startswith("netcheck=fail ") and " bad=n3(port-down: mlx5_3)" in job.comment()
            if "drain_brake=noisy" not in job.comment():  # the machine is busy
                break
        reason = cluster.exec("ctl", "sinfo", "-h", "-N", "-n", "n3", "-o", "%E").stdout
        assert ("netcheck: job" in reason and "n3(port-down: mlx5_3)" in reason) == drain, reason
        assert (" drain=n3" in job.comment()) == drain, job.comment()
    finally:
        if drain:
            cluster.exec("ctl", "scontrol", "update", "NodeName=n3", "State=RESUME", check=False)
            cluster.exec("ctl", "scontrol", "update", "NodeName=n3", "Reason=", check=False)
            cluster.wait_idle()


@pytest.mark.parametrize("does", ["exec sleep 60", "kill -SEGV $$", "exec yes >&3", "echo nonsense >&3; exit 0"])
def test_a_look_that_goes_wrong_harms_no_check(cluster, machines, does):
    for _ in range(3):  # the machine may be busy
        with machines(instead={"n3": does}):
            job = cluster.sbatch("--netcheck")
            assert job.wait() == "COMPLETED"
        if job.comment().startswith("netcheck=pass "):
            break
    assert job.comment().startswith("netcheck=pass "), job.comment()
    assert "hardware" not in job.record("n1")["report"]["plan"]["nodes"][2]
    assert any("the hardware was not looked at" in line for line in job.record("n3")["report"]["log"])
    until(lambda: not cluster.processes("n3", r"sleep 60|yes"), "the end of the look", cluster)
