"""The kill switch, thrown in the very moment of an action: what has begun ends whole, nothing begins after it, and the line says so."""

import re

import pytest
from actions import blamed, config, excluded, let_go, queue, reason, runs
from conftest import until

SWITCH = "/run/cluster/etc/netcheck/disabled"  # as the nodes see it, beside the site's file


@pytest.fixture
def thrown(slow, hook):
    """Throws the switch right before the first node makes a call to Slurm that fits."""
    switch = slow.config_file.with_name("disabled")

    def at(pattern):
        switch.unlink(missing_ok=True)
        hook(f'case "$line" in {pattern}) : >{SWITCH} ;; esac\n')

    at.back = lambda: switch.unlink(missing_ok=True)
    yield at
    at.back()


def acts(counted):
    """What was done to the job or a node, in order: the calls that change something, and from each comment what was done."""
    done = []
    for call in counted().get("n1", []):
        if "AdminComment=" in call:
            done.append("said" + "".join(re.findall(r" (?:action|drain|brake)=\S+", call)))
        elif call.split()[0] in ("scontrol", "scancel"):
            done.append(" ".join(call.split()[:2]))
    return done


def refused(slow, counted, thrown, pattern, want):
    def one():
        thrown(pattern)
        counted()
        return slow.sbatch("--netcheck", nodes=3)

    return blamed(slow, one, want=want)


def test_before_anything_has_begun_nothing_is_done(slow, counted, thrown):
    slow.configure(config(action="requeue", drain=True))
    job = refused(slow, counted, thrown, '*" AdminComment="*', want=" slow=n3")
    assert job.wait() == "COMPLETED" and len(runs(job)) == 1
    announced, taken_back = acts(counted)
    assert announced.startswith("said action=requeue") and taken_back == "said action=annotate brake=disabled"
    assert job.comment().endswith(" action=annotate brake=disabled")
    assert reason(slow, "n3") == "idle none"
    assert job.record("n1")["action"] == "annotate"


def test_a_drain_is_done_and_the_job_is_left_alone(slow, counted, thrown):
    slow.configure(config(action="requeue", drain=True))
    job = refused(slow, counted, thrown, '*" State=DRAIN "*', want=" drain=n3")
    assert job.wait() == "COMPLETED" and len(runs(job)) == 1
    assert acts(counted) == ["said action=requeue drain=n3", "scontrol update", "said action=annotate brake=disabled drain=n3"]
    assert re.search(r" action=annotate brake=disabled drain=n3 acted=\d+$", job.comment())
    until(lambda: re.match(r"drain netcheck: job \d+ measured n3\(tx: ", reason(slow, "n3")), "a drained node", slow)


def test_a_requeue_keeps_the_job_away_from_the_node_and_does_not_let_it_start(slow, counted, thrown):
    slow.configure(config(action="requeue"))
    job = refused(slow, counted, thrown, '"scontrol requeue "*', want=" action=requeue requeues=1 acted=")
    slow.prologs_end(["n1"])
    assert acts(counted) == ["said action=requeue", "scontrol requeue", "scontrol update"]
    assert queue(slow, job.number) == "PD BeginTime" and excluded(slow, job) == {"n3"}
    thrown.back()
    let_go(slow, job)
    until(lambda: runs(job)[-1]["State"] == "COMPLETED", "a second run", slow)
    assert " requeues=1 prev=fail(slow=n3)" in job.comment()


def test_a_hold_is_said_and_done(slow, counted, thrown):
    slow.configure(config(action="hold"))
    job = refused(slow, counted, thrown, '"scontrol requeuehold "*', want=" action=hold acted=")
    until(lambda: "held" in queue(slow, job.number), "a hold", slow)
    assert acts(counted) == ["said action=hold", "scontrol requeuehold"]


def test_a_job_that_is_being_let_go_gets_slurms_wait_back_where_it_does_not_start(slow, counted, hook, thrown):
    """Another job takes the node that it needs, in the moment in which the helper lets it go."""
    slow.configure(config(action="requeue"))
    take = "/run/true/scontrol release $(cat /run/cluster/home/other); sleep 2"
    other = slow.sbatch("-w", "n4", "--hold", nodes=1, script="sleep 30")
    (slow.folder / "home/other").write_text(other.number)

    def one():
        hook(f'case "$line" in "scontrol update JobId="*" StartTime=now ") {take}; : >{SWITCH} ;; esac\n')
        counted()
        return slow.sbatch("--netcheck", nodes=3)

    job = blamed(slow, one, want=" action=requeue requeues=1 acted=")
    slow.prologs_end(["n1"])
    changes = [call for call in counted()["n1"] if "StartTime=" in call]
    assert [call.split("StartTime=")[1].strip() for call in changes] == ["now", "now+120"], changes
    until(lambda: queue(slow, job.number) == "PD BeginTime", "Slurm's wait", slow)
