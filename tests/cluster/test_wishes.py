"""One user's wishes beside another's protection: whatever many jobs ask for themselves, the site's limits on actions are not theirs
to use up, and no node is drained for it."""

import os
import re

import pytest
from actions import UNCLEAR, blamed, config, drained_by_us, first_runs, queue, reason, runs
from conftest import until

# NETCHECK_WISHES=1000 for the storm that this stands for.
WISHES = int(os.environ.get("NETCHECK_WISHES", 8))


@pytest.fixture
def bob(slow):
    yield slow
    slow.exec("ctl", "scancel", "--user", "bob", check=False)


def bobs(cluster, want):
    """A job of bob's on n1 to n3, after its first run, with this in its line; where the figures were noisy it is another one."""
    for _ in range(6):
        job = cluster.sbatch("--netcheck", nodes=3, user="bob")
        (row,) = until(lambda job=job: first_runs(job, 1), f"the verdict on job {job.number}", cluster, timeout=120)
        if re.search(want, row["AdminComment"]):
            return job
        assert re.match(UNCLEAR, row["AdminComment"]), row
        cluster.exec("ctl", "scancel", job.number, check=False)
    raise AssertionError(f"the figures of 6 jobs were noisy\n{cluster.logs()}")


def counted_so_far(cluster):
    """Actions of the last hour, those of earlier tests."""
    lines = cluster.exec("ctl", "sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1hours", "-E", "now", "-o", "JobIDRaw,AdminComment").stdout
    return len(set(re.findall(r"^(\d+)\|.* acted=(\d+)", lines, re.MULTILINE)))


def test_a_threshold_that_nothing_reaches_costs_nobody_else_anything(bob):
    """alice asks for 10 Tb/s, in many jobs, two at a time; bob's job meets a node that is slow by the site's own threshold."""
    rate = counted_so_far(bob) + 7  # bob's at most, and far fewer than alice's
    bob.configure(config(action="requeue", requeue_fallback="cancel", drain=True, max_actions_per_hour=rate))
    tasks = ["--array", f"1-{WISHES}", "-p", "main", "-x", "n3", "--nice=1000000", "-o", "/dev/null"]
    storm = bob.sbatch("--netcheck=min=10Tbps", *tasks, nodes=2)

    def ended():
        return [row for row in runs(storm) if row["State"].split()[0] in ("CANCELLED", "COMPLETED")]

    until(lambda: len(ended()) >= 4, "the first of alice's", bob, timeout=120)
    job = bobs(bob, " action=requeue drain=n3 requeues=1 acted=")
    rows = until(lambda: len(ended()) == WISHES and ended(), "the last of alice's", bob, timeout=120 + 20 * WISHES, pause=1)
    lines = [row["AdminComment"] for row in rows]
    assert not [line for line in lines if " acted=" in line or " drain=" in line or "max_actions" in line], lines
    refused = [line for line in lines if re.search(r"^netcheck=fail .* action=cancel wanted=requeue brake=\S+$", line)]
    assert len(refused) >= WISHES - 3, lines  # on a busy machine a check may break off
    assert drained_by_us(bob) == {"n3"}
    # While alice's took the nodes in turns bob's may have waited for Slurm's two minutes.
    until(lambda: runs(job)[-1]["State"] == "COMPLETED", "bob's second run", bob, timeout=240)
    assert runs(job)[-1]["NodeList"] == "n[1-2,4]"


def test_an_action_that_a_user_asks_for_is_not_the_sites(bob):
    users = '[users]\nuser_actions = ["hold"]\n'
    bob.configure(config(max_actions_per_hour=counted_so_far(bob) + 1) + users)
    for _ in range(3):
        job = blamed(bob, lambda: bob.sbatch("--netcheck=action=hold", nodes=3), want=" action=hold")
        until(lambda job=job: "held" in queue(bob, job.number), "a hold", bob)
        assert " action=hold" in runs(job)[0]["AdminComment"] and " acted=" not in runs(job)[0]["AdminComment"]
    bob.configure(config(drain=True, max_actions_per_hour=counted_so_far(bob) + 1) + users)
    job = bobs(bob, " action=annotate drain=n3 acted=")
    assert job.wait() == "COMPLETED"
    until(lambda: reason(bob, "n3").startswith("drain "), "a drained node", bob)
