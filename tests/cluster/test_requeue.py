"""What a requeue meets besides its brakes (test_actions.py): the user's own exclusions, a preemption, a site that requeues nothing."""

import contextlib
import time

import pytest
from actions import blamed, config, excluded, queue, reason, runs
from conftest import until


def test_a_users_own_exclusions_are_kept(slow):
    """Of five nodes one is the user's, one is slow, and three are left."""
    slow.configure(config(action="requeue"))
    again = "test ${SLURM_RESTART_COUNT:-0} = 0 || sleep 300"
    job = blamed(slow, lambda: slow.sbatch("--netcheck", "-p", "main", "-x", "n4", nodes=3, script=again))
    until(lambda: [r["State"] for r in runs(job)] == ["REQUEUED", "RUNNING"], "a second run", slow)
    first, second = runs(job)
    assert first["NodeList"] == "n[1-3]" and " action=requeue requeues=1 " in first["AdminComment"]
    assert second["NodeList"] == "n[1-2,5]"
    assert excluded(slow, job) == {"n3", "n4"}
    slow.prologs_end()  # the helper, too, has left the list as it is
    assert excluded(slow, job) == {"n3", "n4"}


@pytest.fixture
def urgent(slow):
    """Jobs of the partition `other` send those of `four` back into the queue."""
    slow.exec("ctl", "scontrol", "update", "PartitionName=other", "PriorityTier=10")
    yield slow
    slow.exec("ctl", "scontrol", "update", "PartitionName=other", "PriorityTier=1")


def test_a_preemption_does_not_count_as_a_requeue_of_ours(urgent):
    urgent.configure(config(action="requeue", max_requeues=1))

    def preempted():
        """A job that has passed, has been sent back by a more urgent one, and now meets a slow node."""
        urgent.script("shape", "n3", "off")
        first_alone = "test ${SLURM_RESTART_COUNT:-0} != 0 || sleep 300"
        job = urgent.sbatch("--netcheck", "--requeue", nodes=3, script=first_alone)
        job.wait_text("netcheck=pass")
        urgent.script("shape", "n3", "100mbit", "--tx")
        assert urgent.sbatch("-p", "other", "-w", "n1", nodes=1).wait() == "COMPLETED"
        until(lambda: queue(urgent, job.number, "%t") == "PD", "a preempted job", urgent)
        time.sleep(2)  # Slurm 22.05 takes what was signed in the second of the job's end for a part of its first run
        urgent.exec("ctl", "scontrol", "update", f"JobId={job.number}", "StartTime=now")
        return job

    first, second = runs(blamed(urgent, preempted))[:2]
    assert first["State"] == "PREEMPTED" and second["State"] == "REQUEUED"
    # It had been restarted once before: of our own requeues this is the first, and the line says so.
    assert " action=requeue requeues=1 " in second["AdminComment"] and " brake=" not in second["AdminComment"]


@contextlib.contextmanager
def slurm_conf(cluster, before, after):
    file = cluster.folder / "etc/slurm/slurm.conf"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    cluster.exec("ctl", "scontrol", "reconfigure")
    try:
        yield
    finally:
        file.write_text(text)
        cluster.exec("ctl", "scontrol", "reconfigure")


def test_where_slurm_requeues_nothing_the_fallback_counts(slow):
    slow.configure(config(action="requeue", requeue_fallback="cancel"))
    with slurm_conf(slow, "JobRequeue=1", "JobRequeue=0"):
        job = slow.sbatch("--netcheck", nodes=3)
        assert job.wait().startswith("CANCELLED")
    assert " action=cancel wanted=requeue brake=no-requeue" in job.comment()
    assert reason(slow, "n3") == "idle none"
