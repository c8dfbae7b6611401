"""The helper that lets a requeued job start early, and whoever does something to the job while it waits: theirs counts, nothing is
done twice, and nothing of ours stays. It is stopped after its first look, and goes on when the other has acted."""

import contextlib
import os
import signal

from actions import blamed, config, excluded, let_go, queue, runs
from conftest import until

HELPER = r"netcheck prolog"

# The helper alone asks sinfo for some nodes. It sleeps for 3 s then; its answer is there long before that second is over.
STOP_AFTER_ITS_LOOK = """
case "$line" in "sinfo "*--nodes=*) (sleep 1; kill -STOP $PPID) </dev/null >/dev/null 2>&1 & ;; esac
"""


def stopped(cluster):
    """The helper's pid, once it stands still."""
    for pid, _ in cluster.processes("n1", HELPER):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "T":
                return pid
    return None


@contextlib.contextmanager
def waiting(slow, counted, hook, *options):
    """A job that has been sent away from n3; what the block does is done while the helper waits. Then it has gone on to its end."""
    slow.configure(config(action="requeue"))
    hook(STOP_AFTER_ITS_LOOK)
    again = "test ${SLURM_RESTART_COUNT:-0} = 0 || sleep 20"
    for _ in range(5):  # where the nodes were taken there was nothing to wait for
        job = blamed(slow, lambda: slow.sbatch("--netcheck", *options, nodes=3, script=again), want=" slow=n3\\(.* action=requeue ")
        helper = until(lambda: stopped(slow) or not slow.processes("n1", HELPER), "a helper that waits", slow)
        if helper is not True:
            break
        slow.exec("ctl", "scancel", job.number, check=False)
    else:
        raise AssertionError(f"no helper waited\n{slow.logs()}")
    assert queue(slow, job.number) == "PD BeginTime"
    hook(None)
    counted()
    try:
        yield job
    finally:
        os.kill(helper, signal.SIGCONT)
    slow.prologs_end(["n1"])


def may_start(cluster, job):
    return queue(cluster, job.number, "%S")


def acts(calls):
    """What of it changes anything."""
    return [call for call in calls.get("n1", []) if call.split()[0] not in ("squeue", "sinfo", "sacct")]


def refused_once(job):
    """The first run's line says what was done, once; no other run's does."""
    first, *later = runs(job)
    assert first["State"] == "REQUEUED" and " action=requeue requeues=1 acted=" in first["AdminComment"]
    return not any(" acted=" in run["AdminComment"] for run in later if run["AdminComment"] != first["AdminComment"])


def test_a_job_that_is_cancelled_meanwhile_stays_cancelled(slow, counted, hook):
    with waiting(slow, counted, hook) as job:
        slow.exec("ctl", "scancel", job.number)
    assert acts(counted()) == []
    until(lambda: job.state().startswith("CANCELLED"), "the end", slow)
    assert queue(slow, job.number) == "" and refused_once(job)


def test_a_job_that_is_let_go_meanwhile_runs_once(slow, counted, hook):
    with waiting(slow, counted, hook) as job:
        let_go(slow, job)
        until(lambda: queue(slow, job.number, "%t") == "R", "a second run", slow)
        job.wait_text("netcheck=pass")  # its own prolog has ended
        counted()
    assert acts(counted()) == []
    assert queue(slow, job.number, "%t") in ("R", "") and len(runs(job)) == 2 and refused_once(job)


def test_a_job_that_is_requeued_meanwhile_keeps_slurms_wait(slow, counted, hook):
    with waiting(slow, counted, hook) as job:
        let_go(slow, job)
        job.wait_text("netcheck=pass")
        until(lambda: queue(slow, job.number, "%t") == "R", "a second run", slow)
        slow.exec("ctl", "scontrol", "requeue", job.number)
        until(lambda: queue(slow, job.number) == "PD BeginTime", "the administrator's requeue", slow)
        wait = may_start(slow, job)
        counted()
    assert acts(counted()) == []
    assert (queue(slow, job.number), may_start(slow, job)) == ("PD BeginTime", wait)
    assert [run["State"] for run in runs(job)[:2]] == ["REQUEUED", "REQUEUED"] and refused_once(job)


def test_a_job_that_is_put_off_meanwhile_stays_put_off(slow, counted, hook):
    with waiting(slow, counted, hook) as job:
        slow.exec("ctl", "scontrol", "update", f"JobId={job.number}", "StartTime=now+1hour")
        wait = may_start(slow, job)
    assert acts(counted()) == []
    assert (queue(slow, job.number), may_start(slow, job)) == ("PD BeginTime", wait)


def test_a_job_that_is_held_and_released_meanwhile_runs_once(slow, counted, hook):
    with waiting(slow, counted, hook) as job:
        slow.exec("ctl", "scontrol", "hold", job.number)
        slow.exec("ctl", "scontrol", "release", job.number)
    assert [call.split()[-1] for call in acts(counted())[:1]] in ([], ["StartTime=now"])  # it may have gone on where it was
    if queue(slow, job.number) == "PD BeginTime":
        let_go(slow, job)
    until(lambda: runs(job)[-1]["State"] in ("RUNNING", "COMPLETED"), "a second run", slow)
    assert len(runs(job)) == 2 and refused_once(job)


def test_who_acts_at_the_same_moment_is_not_overruled(slow, counted, hook):
    """Between the helper's last look and what it does then."""
    slow.configure(config(action="requeue"))
    for command, state in (("scontrol hold", "PD JobHeldAdmin"), ("scancel", "")):
        before, _, rest = command.partition(" ")
        hook(f'case "$line" in "scontrol update JobId="*" StartTime=now ") job=${{2#JobId=}}; /run/true/{before} {rest} $job ;; esac\n')
        for _ in range(4):  # where its nodes were taken it let nobody go
            counted()
            job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3), want=" slow=n3\\(.* action=requeue ")
            slow.prologs_end(["n1"])
            calls = [call for call in counted()["n1"] if f"JobId={job.number} StartTime=" in call]
            if calls:
                break
            slow.exec("ctl", "scancel", job.number, check=False)
            slow.wait_idle()
        assert [call.split("StartTime=")[1].strip() for call in calls] == ["now"], calls  # and nothing after the other
        assert queue(slow, job.number) == state
        assert refused_once(job) and len(runs(job)) <= 2
        hook(None)
        slow.exec("ctl", "scancel", job.number, check=False)
        slow.wait_idle()


@contextlib.contextmanager
def partition(cluster, name, nodes):
    before = cluster.exec("ctl", "sinfo", "-h", "-p", name, "-o", "%N").stdout.strip()
    cluster.exec("ctl", "scontrol", "update", f"PartitionName={name}", f"Nodes={nodes}")
    try:
        yield
    finally:
        cluster.exec("ctl", "scontrol", "update", f"PartitionName={name}", f"Nodes={before}")


def test_a_job_that_could_never_run_gets_its_users_own_list_back(slow, counted, hook):
    """Of main's five nodes one is the user's to avoid, one slow, and one is taken out of the partition while the helper waits."""
    with contextlib.ExitStack() as stack:
        with waiting(slow, counted, hook, "-p", "main", "-x", "n5") as job:
            assert excluded(slow, job) == {"n3", "n5"}
            stack.enter_context(partition(slow, "main", "n[1-3,5]"))
        changes = [call.split(" ", 3)[-1].strip() for call in acts(counted())]
        assert changes == ["StartTime=now", "ExcNodeList=n5 StartTime=now+120"]
        assert excluded(slow, job) == {"n5"}
        until(lambda: queue(slow, job.number) == "PD BeginTime", "a job that waits for its time", slow)
        let_go(slow, job)
        until(lambda: runs(job)[-1]["State"] in ("RUNNING", "COMPLETED"), "a second run", slow)
        job.wait_text("netcheck=")
        slow.prologs_end()
        assert runs(job)[-1]["NodeList"] == "n[1-3]"
