"""Actions and their brakes on a real cluster: what happens to the job, to its siblings, to its nodes, and what sacct tells.

n3 sends at a tenth of its rate. A job of three nodes is given n1 to n3 first, and n4 is to spare.
"""

import contextlib
import re
import time

import pytest
from actions import SLOW, UNCLEAR, blamed, config, epoch, queue, reason, runs
from conftest import until


def test_a_refused_job_runs_elsewhere_before_slurms_two_minutes_are_over(slow):
    slow.configure(config(action="requeue"))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3))
    until(lambda: len(runs(job)) == 2 and runs(job)[1]["State"] == "COMPLETED", "a second run", slow)
    first, second = runs(job)
    assert first["State"] == "REQUEUED"
    assert "slow=n3(tx: " in first["AdminComment"] and " action=requeue requeues=1 " in first["AdminComment"]
    assert second["NodeList"] == "n[1-2,4]"
    assert second["AdminComment"].startswith("netcheck=pass")
    assert second["AdminComment"].endswith(" requeues=1 prev=fail(slow=n3)")
    # On an idle machine some 10 s (scripts/bench-actions); without help 121 and more.
    assert epoch(second["Start"]) - epoch(first["End"]) <= 60
    assert "prev=fail(slow=n3)" in job.text()  # the user is told, too


def test_jobs_that_are_refused_one_after_the_other_cost_no_node(slow):
    """slurmd 22.05 loses the prolog of a job that comes back to a node within two seconds of another's end there."""
    slow.configure(config(action="requeue"))
    jobs = [slow.sbatch("--netcheck", nodes=3) for _ in range(3)]
    until(lambda: any(job.state() == "COMPLETED" for job in jobs), "a job through", slow, timeout=60)
    time.sleep(25)  # slurmd gives up after 20 s
    assert not {n: s for n, s in slow.node_states().items() if "dr" in s}, slow.logs()
    for job in jobs:
        assert "launch failed" not in queue(slow, job.number)


@pytest.mark.parametrize("action", ["cancel", "hold"])
def test_an_arrays_other_tasks_are_left_alone(slow, action):
    slow.configure(config(action=action))
    job = slow.sbatch("--netcheck", "--array=0-1", nodes=2, script="sleep 12")

    def task(number, state):
        return [r for r in runs(job) if r["JobID"] == f"{job.number}_{number}" and r["State"].startswith(state)]

    # The last task to start has the array's own raw id, and is the one with n3.
    refused = until(lambda: task(1, {"cancel": "CANCELLED", "hold": "REQUEUED"}[action]), "a refusal", slow)
    assert f" action={action}" in refused[0]["AdminComment"]
    until(lambda: task(0, "RUNNING"), "the other task to run on", slow)
    if action == "hold":
        until(lambda: "held" in queue(slow, f"{job.number}_1"), "a hold", slow)
    (other,) = until(lambda: task(0, "COMPLETED"), "the other task", slow)
    assert other["AdminComment"].startswith("netcheck=pass") and "action=" not in other["AdminComment"]


def test_each_task_of_an_array_is_requeued_by_itself(slow):
    slow.configure(config(action="requeue"))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", "--array=0-1", nodes=3), tasks=2)
    until(lambda: [r["State"] for r in runs(job)].count("REQUEUED") == 2, "a refusal of each", slow)
    assert all(" requeues=1 " in r["AdminComment"] for r in runs(job) if r["State"] == "REQUEUED")
    assert "requeues=2" not in str(runs(job))


def test_a_heterogeneous_job_is_only_annotated(slow):
    slow.configure(config(action="cancel"))
    # The script of component 0 does not wait for the prologs of component 1: it has to last until those are done.
    job = slow.sbatch("--netcheck", ":", "--exclusive", "-N", "2", "--netcheck", nodes=2, script="sleep 4")
    until(lambda: [r["State"] for r in runs(job)] == ["COMPLETED"] * 2, "both components", slow)
    until(lambda: all(r["AdminComment"] for r in runs(job)), "both comments", slow)
    first, second = (r["AdminComment"] for r in runs(job))
    assert first.startswith("netcheck=pass")
    assert second.startswith("netcheck=fail") and "wanted=cancel brake=heterogeneous" in second


@pytest.mark.parametrize(
    "options, nodes, brake",
    [
        ((), 4, "nodes-left=3"),
        (("-w", "n3"), 3, "nodelist-has-n3"),
        (("-x", "n4"), 3, "nodes-left=2"),
        (("--no-requeue",), 3, "no-requeue"),
        (("--contiguous",), 3, "contiguous"),
        (("-w", "n[3-4]"), 2, "two-nodes"),
    ],
)
def test_a_job_that_could_not_run_elsewhere_runs_and_is_told(slow, options, nodes, brake):
    slow.configure(config(action="requeue"))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", *options, nodes=nodes), want="" if brake == "two-nodes" else " slow=")
    assert job.wait() == "COMPLETED"
    assert len(runs(job)) == 1
    assert f" action=annotate wanted=requeue brake={brake}" in job.comment()


def test_a_job_whose_nodes_fit_its_constraint_only_together_is_not_sent_away(slow):
    """Without n3 there are enough nodes, each like one that it was given; but Slurm would say BadConstraints, for ever."""
    slow.configure(config(action="requeue"))

    def features(words):
        for node, word in words.items():
            slow.exec("ctl", "scontrol", "update", f"NodeName={node}", f"AvailableFeatures={word}", f"ActiveFeatures={word}")

    features({"n1": "rack1", "n2": "rack1", "n3": "rack2", "n4": "rack1"})
    try:
        job = blamed(slow, lambda: slow.sbatch("--netcheck", "-C", "[rack1*2&rack2*1]", nodes=3))
        assert job.wait() == "COMPLETED"
        assert " action=annotate wanted=requeue brake=constraint" in job.comment()
    finally:
        features(dict.fromkeys(["n1", "n2", "n3", "n4"], ""))


def test_a_job_in_a_reservation_is_not_sent_away(slow):
    slow.configure(config(action="requeue"))
    slow.exec("ctl", "scontrol", "create", "reservation", "ReservationName=ours", "StartTime=now", "Duration=10",
              "Users=alice", "Nodes=n[1-4]")  # fmt: skip
    try:
        job = blamed(slow, lambda: slow.sbatch("--netcheck", "--reservation=ours", nodes=3))
        assert job.wait() == "COMPLETED"
        assert "brake=reservation" in job.comment()
    finally:
        slow.exec("ctl", "scancel", "--user", "alice", check=False)
        time.sleep(1)
        slow.exec("ctl", "scontrol", "delete", "ReservationName=ours")


def test_the_fallback_is_said(slow):
    slow.configure(config(action="requeue", requeue_fallback="hold"))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=4))
    until(lambda: "held" in queue(slow, job.number), "a hold", slow)
    assert " action=hold wanted=requeue brake=nodes-left=3" in runs(job)[0]["AdminComment"]
    assert set(slow.node_states().values()) == {"idle"}


def test_a_job_is_requeued_by_us_so_often_and_no_more(slow):
    slow.configure(config(action="requeue", max_requeues=1))
    slow.script("shape", "n4", "100mbit", "--tx")  # the spare one is slow, too
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3))
    until(lambda: len(runs(job)) == 2 and runs(job)[1]["State"] == "COMPLETED", "a second run", slow, timeout=60)
    second = runs(job)[1]["AdminComment"]
    # Two of four slow ones in each run of three: named in the first, and in the second.
    assert "brake=max_requeues=1 requeues=1 prev=fail(slow=n3)" in second


@pytest.mark.parametrize("command", ["salloc", "srun"])
def test_an_interactive_job_is_not_cancelled_unless_the_site_says_so(slow, command):
    slow.configure(config(action="requeue"))
    last = ["ctl", "sh", "-c", "sacct -a -X -n -P -o JobName,State,AdminComment | tail -n 1"]
    for turn in range(6):
        name = f"{command}-{turn}"
        done = slow.exec("ctl", command, "--netcheck", "--exclusive", "-N3", "-J", name, "true", user="alice")
        assert done.returncode == 0
        ended = re.compile(rf"{name}\|COMPLETED\|(.+)")
        (line,) = until(lambda ended=ended: ended.findall(slow.exec(*last).stdout), "the comment", slow)
        if "wanted=requeue brake=not-batch" in line:
            return
        assert re.match(UNCLEAR, line), line  # a machine with too little CPU
    raise AssertionError(f"the figures of 6 jobs were noisy\n{slow.logs()}")


@pytest.mark.parametrize("command", ["salloc", "srun"])
def test_a_cancelled_interactive_job_says_why_on_its_terminal(slow, command):
    slow.configure(config(action="cancel"))
    done = slow.exec("ctl", command, "--netcheck", "--exclusive", "-N3", "sleep", "20", user="alice", check=False)
    assert done.returncode != 0
    assert "netcheck cancels this job: netcheck=fail" in done.stdout + done.stderr
    assert "slow=n3(tx: " in done.stdout + done.stderr


def test_a_dry_run_only_talks(slow):
    slow.configure(config(action="requeue", drain=True, dry_run=True))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3), want=" would_drain=n3")
    assert len(runs(job)) == 1
    assert " action=annotate would=requeue would_drain=n3" in job.comment()
    assert "action=annotate would=requeue" in job.text()
    assert reason(slow, SLOW) == "idle none"


def test_a_culprit_is_drained_with_what_was_measured_and_not_a_second_one(slow):
    slow.configure(config(drain=True))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3, script="sleep 1"), want=" drain=n3")
    assert job.state() == "COMPLETED"  # a drain leaves the job on its node alone
    assert " action=annotate drain=n3" in job.comment()
    until(lambda: reason(slow, SLOW).startswith("drain "), "a drained node", slow)
    assert re.fullmatch(r"drain netcheck: job \d+ measured n3\(tx: [\d.]+Mbps\)", reason(slow, SLOW))
    slow.script("shape", "n2", "100mbit", "--tx")
    # n1, n2, n4. Either brake will do: what counts is that the node is left alone.
    second = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3), want=" drain_brake=(max_drained_total=1|noisy)")
    assert "slow=n2(tx: " in second.comment() and second.state() == "COMPLETED"
    assert reason(slow, "n2") == "idle none"


def test_a_node_that_somebody_drains_meanwhile_keeps_his_reason(slow):
    slow.configure(config(drain=True))

    def drained_meanwhile():
        slow.exec("ctl", "scontrol", "update", f"NodeName={SLOW}", "State=RESUME", check=False)
        # By name: a node that was drained a moment ago gets no job before it has answered its controller.
        with slow.held(("--netcheck", "-w", "n[1-3]"), nodes=3) as job:
            slow.exec("ctl", "scontrol", "update", f"NodeName={SLOW}", "State=DRAIN", "Reason=disk to be changed")
        return job

    job = blamed(slow, drained_meanwhile, want="drain_brake=n3:has-a-reason")
    assert job.state() == "COMPLETED"
    assert reason(slow, SLOW).endswith("disk to be changed")


def test_a_users_wish_is_for_his_own_job_only(cluster):
    cluster.configure(config(action="cancel", drain=True, max_actions_per_hour=1))
    for _ in range(2):  # and it is not counted
        job = cluster.sbatch("--netcheck=10Tbps", nodes=3)
        assert job.wait().startswith("CANCELLED")
        assert " action=cancel" in job.comment() and "acted=" not in job.comment()
    assert set(cluster.node_states().values()) <= {"idle", "comp"}


def test_a_day_on_which_all_is_slow_costs_no_node(slow):
    slow.configure(config(action="requeue", drain=True))
    for node in ["n1", "n2", "n3", "n4"]:
        slow.script("shape", node, "100mbit")
    job = slow.sbatch("--netcheck", nodes=4)
    assert job.wait() == "COMPLETED"
    assert job.comment().startswith("netcheck=fail")
    assert "wanted=requeue brake=fabric-wide" in job.comment()
    assert set(slow.node_states().values()) <= {"idle", "comp"}


def test_actions_have_a_rate(slow):
    slow.configure(config(action="hold"))
    first = slow.sbatch("--netcheck", nodes=3)
    until(lambda: "held" in queue(slow, first.number), "a hold", slow)
    slow.configure(config(action="hold", drain=True, max_actions_per_hour=1))
    second = slow.sbatch("--netcheck", nodes=3)
    assert second.wait() == "COMPLETED"
    assert "wanted=hold brake=max_actions_per_hour=1" in second.comment()
    assert reason(slow, SLOW) == "idle none"


def test_whoever_holds_the_job_meanwhile_keeps_it(slow):
    slow.configure(config(action="requeue"))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3))
    until(lambda: queue(slow, job.number, "%t") == "PD" and len(runs(job)) >= 1, "a refusal", slow)
    slow.exec("ctl", "scontrol", "hold", job.number)
    time.sleep(8)  # longer than the helper takes
    assert queue(slow, job.number) == "PD JobHeldAdmin"


def test_the_kill_switch_ends_the_helper(slow):
    slow.configure(config(action="requeue"))
    switch = slow.config_file.with_name("disabled")
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3))
    try:
        until(lambda: queue(slow, job.number, "%t %r") == "PD BeginTime", "a refusal", slow)
        switch.touch()
        time.sleep(8)
        assert queue(slow, job.number) == "PD BeginTime"
    finally:
        with contextlib.suppress(FileNotFoundError):
            switch.unlink()


def test_another_tools_comment_survives_a_requeue(slow):
    slow.configure(config(action="requeue"))

    def with_a_ticket():
        job = slow.sbatch("--netcheck", "--hold", nodes=3)
        slow.exec("ctl", "scontrol", "update", f"JobId={job.number}", "AdminComment=ticket=42")
        slow.exec("ctl", "scontrol", "release", job.number)
        return job

    job = blamed(slow, with_a_ticket)
    until(lambda: len(runs(job)) == 2 and runs(job)[1]["State"] == "COMPLETED", "a second run", slow)
    assert all(r["AdminComment"].endswith(" | ticket=42") for r in runs(job))
