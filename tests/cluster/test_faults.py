"""What goes wrong around a check, and what must come of it. In none of these is a node drained, a job lost or anything left
behind: the `cluster` fixture looks after each test.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import CONFIG, NODES, Job, until

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer/netcheck-test")

FABRIC = r"netcheck fabric"
PROBE = r"netcheck probe"


def ran(job):
    """The job was not harmed: whatever the check came to, the script ran."""
    assert job.wait(timeout=90) == "COMPLETED"
    assert "script ran on" in job.text()
    return job.comment()


@pytest.mark.parametrize(
    "spec",
    ["400Gb", "-1Gbps", "0Gbps", "nan", "1e400Gbps", "min=1Gbps,min=2Gbps", "mim=1Gbps", "min=", ",", "a\nb", "9" * 10_000],
    ids=lambda spec: repr(spec)[:20],
)
@pytest.mark.parametrize("command", ["sbatch", "srun", "salloc"])
def test_a_malformed_request_is_refused_at_once(cluster, command, spec):
    tail = ["--wrap", "true"] if command == "sbatch" else ["true"]
    done = cluster.exec("ctl", command, f"--netcheck={spec}", *tail, user="alice", check=False)
    assert done.returncode != 0
    about = [line for line in done.stderr.splitlines() if "netcheck" in line]
    assert about and "--netcheck=400Gbps" in done.stderr  # a right example
    assert "Submitted" not in done.stdout and "Granted" not in done.stderr


def smuggling_conf(cluster, tmp_path):
    """A slurm.conf of alice's own, with a plugin that registers the option and validates nothing."""
    home = cluster.folder / "home/alice"
    source = tmp_path / "smuggle.c"
    source.write_text(
        """
        #include <slurm/spank.h>
        SPANK_PLUGIN(netcheck, 1)
        static int any(int value, const char* text, int remote) { return 0; }
        int slurm_spank_init(spank_t sp, int ac, char** av) {
          struct spank_option option = {"netcheck", "SPEC", "anything", 2, 0, any};
          return spank_option_register(sp, &option);
        }
        """
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", home / "smuggle.so", source], check=True)
    (home / "plugstack.conf").write_text(f"required {home}/smuggle.so\n")
    conf = cluster.exec("ctl", "cat", "/etc/slurm/slurm.conf").stdout
    conf = re.sub(r"(?im)^plugstackconfig=.*\n", "", conf) + f"\nPlugStackConfig={home}/plugstack.conf\n"
    (home / "slurm.conf").write_text(conf)
    return home / "slurm.conf"


@pytest.mark.parametrize("spec", ["min=-5Gbps", "bogus", "x" * 4000, "a\nAdminComment=owned"], ids=lambda spec: repr(spec)[:20])
def test_a_smuggled_request_is_refused_again_in_the_prolog(cluster, tmp_path, spec):
    conf = smuggling_conf(cluster, tmp_path)
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho script ran on $(hostname)\n")
    output = cluster.folder / "home/alice/smuggled.out"
    output.unlink(missing_ok=True)
    done = cluster.exec(
        "ctl", "env", f"SLURM_CONF={conf}", "sbatch", "--parsable", "-N4", "--exclusive", "-o", "smuggled.out", f"--netcheck={spec}",
        user="alice", input=script.read_text(), cwd=cluster.home, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    comment = ran(Job(cluster, done.stdout.strip(), output))
    assert comment.startswith("netcheck=inconclusive") and "owned" not in comment.split("reason=")[0]


def test_a_node_whose_prolog_never_comes_is_named_missing(cluster):
    with cluster.plugged("n3", text=""):
        comment = ran(cluster.sbatch("--netcheck"))
    assert re.search(r"netcheck=inconclusive phase=rendezvous missing=n3\b", comment)


def late_program(cluster, seconds):
    late = cluster.folder / "root/late"
    late.write_text(f"#!/bin/sh\nsleep {seconds}\nexec $(dirname $0)/sbin/netcheck \"$@\"\n")
    late.chmod(0o755)
    return "/run/cluster/root/late"


def test_a_node_whose_prolog_is_two_seconds_late_is_waited_for(cluster):
    with cluster.plugged("n3", program=late_program(cluster, 2)):
        comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=pass")


def test_a_leader_whose_prolog_is_two_seconds_late_is_waited_for(cluster):
    with cluster.plugged("n1", program=late_program(cluster, 2)):
        comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=pass")


@pytest.mark.parametrize("blow", [signal.SIGSEGV, signal.SIGSTOP, signal.SIGKILL], ids=lambda blow: blow.name)
@pytest.mark.parametrize("node", ["n1", "n3"])
def test_a_fabric_that_breaks_gives_no_evidence(cluster, node, blow):
    with cluster.held() as job:
        os.kill(cluster.appears(node, FABRIC), blow)
    comment = ran(job)
    assert re.match(r"netcheck=inconclusive phase=\w+ ", comment) and f"{node}: " in comment, comment
    assert "slow=" not in comment


@pytest.mark.parametrize("blow", [signal.SIGSEGV, signal.SIGSTOP, signal.SIGKILL], ids=lambda blow: blow.name)
@pytest.mark.parametrize("node", ["n1", "n3"])
def test_a_probe_that_breaks_is_missing_and_never_slow(cluster, node, blow):
    with cluster.held() as job:
        pid = cluster.appears(node, PROBE)
        os.kill(pid, blow)
        if node == "n1" and blow == signal.SIGSTOP:
            assert ran(job).startswith("netcheck=inconclusive")  # before the block's end lets it go on
    comment = ran(job)
    assert comment.startswith("netcheck=inconclusive")
    assert "slow=" not in comment


def test_a_supervisor_that_is_killed_leaves_nothing_behind(cluster):
    with cluster.held() as job:
        os.kill(cluster.appears("n3", r"netcheck prolog"), signal.SIGKILL)
    comment = ran(job)
    assert comment.startswith("netcheck=inconclusive") and "slow=" not in comment


def test_a_fabric_that_not_even_sigkill_ends_is_left_and_remembered(cluster):
    FREEZER.mkdir(exist_ok=True)
    try:
        with cluster.held() as job:
            pid = cluster.appears("n3", FABRIC)
            (FREEZER / "tasks").write_text(str(pid))
            (FREEZER / "freezer.state").write_text("FROZEN")
        assert ran(job).startswith("netcheck=inconclusive")
        # While it lives, later checks that need n3 say so and do not try.
        comment = ran(cluster.sbatch("--netcheck"))
        assert comment.startswith("netcheck=inconclusive") and "n3" in comment
    finally:
        (FREEZER / "freezer.state").write_text("THAWED")
        deadline = time.monotonic() + 10
        while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        FREEZER.rmdir()
    assert ran(cluster.sbatch("--netcheck")).startswith("netcheck=pass")


def test_a_data_path_that_is_cut_while_control_lives_is_zero_and_named(cluster):
    # Rail 0 carries Slurm and the control channel, rail 1 the measured bytes.
    cluster.configure(CONFIG + '[fabric]\ndevices = ["eth1"]\n')
    with cluster.held() as job:
        cluster.script("link", "n3.1", "down")
    comment = ran(job)
    assert comment.startswith("netcheck=fail busbw=0Gbps ")
    assert re.search(r"slow=n3\((tx\+rx|tx|rx): 0[A-Za-z]*bps\) ", comment), comment


def test_a_node_that_is_cut_off_altogether_is_missing(cluster):
    with cluster.held() as job:
        cluster.script("link", "n3", "down")
    cluster.prologs_end()
    cluster.script("link", "n3", "up")
    comment = ran(job)
    assert comment.startswith("netcheck=inconclusive") and "missing=n3" in comment


def test_a_leader_that_is_cut_off_altogether_harms_no_job(cluster):
    with cluster.held() as job:
        cluster.script("link", "n1", "down")
    cluster.prologs_end()
    cluster.script("link", "n1", "up")
    comment = ran(job)
    assert "slow=" not in comment and "netcheck=pass" not in comment


def test_a_controller_that_does_not_answer_costs_only_the_annotation(cluster):
    try:
        with cluster.held() as job:
            cluster.script("daemon", "ctl", "slurmctld", "pause")
        cluster.prologs_end()
    finally:
        cluster.script("daemon", "ctl", "slurmctld", "resume")
    assert job.wait(timeout=120) == "COMPLETED"
    assert "script ran on" in job.text()
    for node in ["n1", "n2", "n3", "n4"]:
        assert job.record(node)["line"].startswith("netcheck=pass")


def test_an_unwritable_record_folder_costs_only_the_record(cluster):
    cluster.exec("n1", "sh", "-c", "mkdir -p /run/netcheck && rm -rf /run/netcheck/records && touch /run/netcheck/records")
    try:
        assert ran(cluster.sbatch("--netcheck")).startswith("netcheck=pass")
    finally:
        cluster.exec("n1", "rm", "/run/netcheck/records")


def test_a_full_disk_costs_only_the_record(cluster):
    cluster.exec("n1", "sh", "-c", "mkdir -p /run/netcheck && mount -t tmpfs -o size=16k tmpfs /run/netcheck && head -c 16k /dev/zero > /run/netcheck/full; true")
    try:
        assert ran(cluster.sbatch("--netcheck")).startswith("netcheck=")
    finally:
        cluster.wait_idle()  # the epilog has left the folder
        cluster.exec("n1", "umount", "/run/netcheck")


def test_an_old_record_makes_room_for_a_new_one(cluster):
    ran(cluster.sbatch("--netcheck"))
    cluster.exec("n1", "sh", "-c", "cd /run/netcheck/records && for i in $(seq 1100); do touch -d 2001-01-01 old-$i-0.json; done")
    ran(cluster.sbatch("--netcheck"))
    count = int(cluster.exec("n1", "sh", "-c", "ls /run/netcheck/records | wc -l").stdout)
    assert count <= 1000


RUNS = "echo run ${SLURM_RESTART_COUNT:-0} has verdict ${NETCHECK_VERDICT:-none}; test ${SLURM_RESTART_COUNT:-0} = 1 || sleep 300"


def test_a_stale_notice_is_never_shown_to_a_restarted_job(cluster):
    job = cluster.sbatch("--netcheck", "--requeue", "--open-mode=append", script=RUNS)
    job.wait_text("run 0 has verdict pass")
    assert job.text().count("netcheck=pass") == 1
    # From now on the plugin's program fails on every node: the second run has no verdict of its own.
    with cluster.plugged(*NODES, program="/bin/false"):
        cluster.exec("ctl", "scontrol", "requeue", job.number)
        until(lambda: job.live_state() == "PENDING", "the requeued job to be pending", cluster)
        # Slurm 22.05 knows by the second when it ended the first run, and takes what was signed in that very second for a part of
        # it: a run that starts then is refused by its node ("already killed") and the job has FAILED.
        time.sleep(2)
        cluster.exec("ctl", "scontrol", "update", f"jobid={job.number}", "starttime=now")
        assert job.wait(timeout=90) == "COMPLETED"
    assert "run 1 has verdict none" in job.text()
    assert job.text().count("netcheck=") == 1  # the first run's own


def test_two_jobs_with_one_leader_do_not_measure_each_other(cluster):
    options = ["--oversubscribe", "-n4", "--ntasks-per-node=1", "--exclusive=user"]
    jobs = [cluster.sbatch("--netcheck", *options) for _ in range(2)]
    verdicts = sorted(ran(job).split()[0] for job in jobs)
    assert set(verdicts) <= {"netcheck=pass", "netcheck=inconclusive"}


def test_a_job_cancelled_during_its_check_leaves_nothing(cluster):
    with cluster.held() as job:
        cluster.exec("ctl", "scancel", job.number, user="alice")
    assert job.wait(timeout=60).startswith("CANCELLED")


def rows_of(job, count):
    """Job id, state and AdminComment of the parts of a job; nothing until there are `count` and all have completed."""
    done = job.cluster.exec("ctl", "sacct", "-n", "-P", "-X", "-j", job.number, "-o", "JobID,State,AdminComment")
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return rows if len(rows) == count and all(state == "COMPLETED" for _, state, _ in rows) else None


def test_an_array_task_is_annotated_alone(cluster):
    """The last task's raw id is the whole array's: a plain update would hit every task. So that task, which gets the last two
    nodes, has a slow link: its line differs, and comes last."""
    cluster.script("shape", "n3", "100mbit")
    job = cluster.sbatch("--netcheck", "--array=0-1", nodes=2)
    rows = until(lambda: rows_of(job, 2), "both tasks to end", cluster, timeout=90)
    assert {row[0].partition("_")[2]: row[2].split()[0] for row in rows} == {"0": "netcheck=pass", "1": "netcheck=fail"}, rows


def test_both_components_of_a_heterogeneous_job_get_a_line(cluster):
    """The script waits for the prologs of its own component alone, and with it the others end: it has to last."""
    done = cluster.exec(
        "ctl", "sbatch", "--parsable", "--netcheck", "-N2", "--exclusive", ":", "-N2", "--exclusive",
        user="alice", input="#!/bin/sh\nsleep 4\n", cwd=cluster.home,
    )  # fmt: skip
    rows = until(lambda: rows_of(Job(cluster, done.stdout.strip()), 2), "both components to end", cluster, timeout=90)
    assert all(comment.startswith("netcheck=") for _, _, comment in rows), rows
