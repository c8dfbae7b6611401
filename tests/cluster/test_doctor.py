"""`netcheck doctor` on a real cluster: every line is right where all is well, and what is broken is named with its remedy."""

import contextlib
import os
import subprocess

import pytest
from conftest import CONFIG, MIN, SPARE, until
from report import PROGRAM, Report, doctor, fails


@pytest.mark.parametrize("node", ["n1", SPARE])  # the hostname of the latter is not its name in Slurm
def test_a_compute_node_on_which_all_is_well(cluster, node):
    report = doctor(cluster, node)
    assert report.levels("warn", "unseen", "fail") == set(), report.whole["findings"]
    assert report.code == 0
    assert (report.whole["node"], report.whole["role"]) == (node, "compute")
    looked_at = {line["what"] for line in report.whole["findings"]}
    assert looked_at >= {
        "plugstack.conf", "plugin", "plugin loads", "slurmd", "PrologFlags", "prolog timeout", "plugin timeout", "BatchStartTimeout",
        "MessageTimeout", "configuration", "probe user", "fabric module", "munge", "ports", "own name", "interfaces", "record folder",
    }  # fmt: skip
    assert "eth0" in report.of("interfaces")["why"]
    # As the account that measures, not as root.
    assert " loads as netcheck" in report.of("fabric module")["why"]
    assert " opened as netcheck" in report.of("munge")["why"]
    (minimum,) = [one for one in report.whole["settings"] if one["key"] == "min"]
    assert (minimum["value"], minimum["source"]) == (MIN, "/etc/netcheck/netcheck.toml:3")


def test_a_controller_and_login_node_on_which_all_is_well(cluster):
    report = doctor(cluster, "ctl")
    assert report.levels("warn", "unseen", "fail") == set(), report.whole["findings"]
    assert (report.code, report.whole["role"]) == (0, "controller")
    assert "fabric module" not in {line["what"] for line in report.whole["findings"]}


def test_people_read_a_line_for_each_and_the_settings_if_they_ask(cluster):
    text = cluster.exec("n1", PROGRAM, "doctor").stdout
    assert "\nok      munge " in text and "netcheck doctor --settings" in text
    assert "\x1b" not in text  # no terminal, no colour
    setting = f'min = "{MIN}" '
    assert setting not in text
    assert setting in cluster.exec("n1", PROGRAM, "doctor", "--settings").stdout


def test_an_ordinary_user_is_told_what_only_root_may_see(cluster):
    report = doctor(cluster, "n1", user="alice")
    assert report.levels("unseen") == {"slurmd"}
    assert report.levels("warn", "fail") == set(), report.whole["findings"]
    assert report.code == 3


@pytest.mark.parametrize(("act", "undo"), [("stop", "start"), ("pause", "resume")])
def test_a_munged_that_does_not_answer(cluster, act, undo):
    cluster.script("daemon", "n2", "munged", act)
    try:
        report = doctor(cluster, "n2")
    finally:
        cluster.script("daemon", "n2", "munged", undo)
    fails(report, "munge", "", "start munged on this node")
    # scontrol asks munged too.
    assert report.of("Slurm's settings")["level"] == "unseen"


def test_a_controller_that_does_not_answer(cluster):
    cluster.script("daemon", "ctl", "slurmctld", "pause")
    try:
        report = doctor(cluster, "n1")
    finally:
        cluster.script("daemon", "ctl", "slurmctld", "resume")
    assert report.of("Slurm's settings")["level"] == "unseen"
    assert "slurmctld" in report.of("Slurm's settings")["remedy"]
    assert report.of("Prolog")["level"] == "unseen"
    assert report.of("Prolog")["why"].startswith("not known: which scripts")
    assert report.levels("fail") == set()
    assert report.code == 3


def test_a_configuration_that_others_may_write(cluster):
    os.chmod(cluster.config_file, 0o666)
    report = doctor(cluster, "n1")
    fails(report, "configuration", "0666", "chmod go-w /etc/netcheck/netcheck.toml")


def test_a_configuration_with_a_slip(cluster):
    cluster.configure(CONFIG + 'mni = "1Gbps"\n')
    fails(doctor(cluster, "n1"), "configuration", "netcheck.toml:4", "min")


def test_a_kill_switch(cluster):
    switch = cluster.config_file.parent / "disabled"
    switch.touch()
    try:
        report = doctor(cluster, "n1")
    finally:
        switch.unlink()
    assert report.of("kill switch")["level"] == "warn"
    assert report.code == 0


def test_a_module_that_is_not_roots(cluster):
    module = cluster.folder / "root/lib/netcheck/netcheck-fabric-ucx.so"
    os.chown(module, 20001, 0)
    try:
        report = doctor(cluster, "n1")
    finally:
        os.chown(module, 0, 0)
    fails(report, "fabric module", "uid 20001", "chown root /run/cluster/root/lib/netcheck/netcheck-fabric-ucx.so")


def test_a_module_that_does_not_load(cluster):
    module = cluster.folder / "root/lib/netcheck/netcheck-fabric-ucx.so"
    good = module.with_suffix(".good")
    module.rename(good)
    try:
        module.write_bytes(b"\x7fELF nonsense")
        report = doctor(cluster, "n1")
    finally:
        good.replace(module)
    fails(report, "fabric module", "netcheck-fabric-ucx.so", "install")


def test_a_plugstack_without_the_plugin(cluster):
    with cluster.plugged("n1", text="# nothing\n"):
        report = doctor(cluster, "n1")
    fails(report, "plugstack.conf", "has no line", "netcheck.conf")


def test_a_plugin_that_is_gone(cluster):
    with cluster.plugged("n1", text="optional /run/cluster/root/gone/netcheck.so\n"):
        report = doctor(cluster, "n1")
    fails(report, "plugin", "/run/cluster/root/gone/netcheck.so", "plugstack.conf")
    assert report.of("plugin loads")["level"] == "fail"


def test_a_slurmd_from_before_the_plugin(cluster):
    line = (cluster.folder / "nodes/n1/plugstack.conf").read_text()
    cluster.script("plugin", "off", "n1")
    try:
        with cluster.plugged("n1", text=line):
            report = doctor(cluster, "n1")
    finally:
        cluster.script("plugin", "on", "n1")
    fails(report, "slurmd", "without the plugin", "restart slurmd")
    assert report.levels("fail") == {"slurmd"}


def test_a_program_that_is_gone(cluster):
    with cluster.plugged("n1", program="/run/cluster/root/sbin/gone"):
        report = doctor(cluster, "n1")
    fails(report, "program", "/run/cluster/root/sbin/gone", "program=")


def test_a_record_folder_that_others_may_write(cluster):
    cluster.exec("n3", "mkdir", "-p", "/run/netcheck")
    cluster.exec("n3", "chmod", "0777", "/run/netcheck")
    try:
        report = doctor(cluster, "n3")
    finally:
        cluster.exec("n3", "chmod", "0755", "/run/netcheck")
    fails(report, "record folder", "0777", "chmod go-w /run/netcheck")


def test_a_probe_user_that_does_not_exist_or_is_used(cluster):
    cluster.configure(CONFIG + '[probe]\nprobe_user = "nosuchuser"\n')
    fails(doctor(cluster, "n1"), "probe user", "no such account", "useradd")
    cluster.configure()
    sleeper = cluster.start("n1", "sleep", "60", user="netcheck")
    try:
        until(lambda: cluster.processes("n1", "^sleep 60"), "a process of netcheck", cluster)
        report = doctor(cluster, "n1")
    finally:
        for pid, _ in cluster.processes("n1", "^sleep 60"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 15)
        sleeper.communicate(timeout=30)
    assert report.of("probe user")["level"] == "warn"
    assert "sleep" in report.of("probe user")["why"]


@contextlib.contextmanager
def known_as(cluster, node, address):
    """The node's name, in its own /etc/hosts."""
    hosts = cluster.folder / f"nodes/{node}/hosts"
    before = hosts.read_text()
    lines = [f"{address} {node}" if line.split()[1:] == [node] else line for line in before.splitlines()]
    hosts.write_text("\n".join(lines) + "\n")  # in place: it is mounted over another
    try:
        yield
    finally:
        hosts.write_text(before)


def test_a_name_that_is_loopback(cluster):
    with known_as(cluster, "n3", "127.0.1.1"):
        report = doctor(cluster, "n3")
    fails(report, "own name", "127.0.1.1", "/etc/hosts")
    assert report.of("interfaces")["level"] == "fail"


@contextlib.contextmanager
def listening(cluster, node, peer):
    """A doctor on `node` that waits for the one of `peer`; what it said is in the list when the block has ended."""
    reports = []
    waiting = cluster.start(node, PROGRAM, "doctor", "--json", "--listen", "--peer", peer)
    until(lambda: 860 in listens(cluster, node), f"the doctor of {node} to listen", cluster)
    try:
        yield reports
        out, _ = waiting.communicate(timeout=90)
        reports.append(Report(subprocess.CompletedProcess([], waiting.returncode, out, "")))
    finally:
        if waiting.poll() is None:
            for pid, _ in cluster.processes(node, "netcheck doctor"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            waiting.communicate(timeout=30)


def listens(cluster, node):
    table = cluster.exec(node, "ss", "-Hltn").stdout
    return {int(line.split()[3].rpartition(":")[2]) for line in table.splitlines()}


def test_two_nodes_meet_as_in_a_check(cluster):
    with listening(cluster, "n2", "n1") as other:
        report = doctor(cluster, "n1", "--peer", "n2")
    assert report.of("peer n2")["level"] == "ok" and "met" in report.of("peer n2")["why"]
    assert other[0].of("peer n1")["level"] == "ok" and "met" in other[0].of("peer n1")["why"]
    assert (report.code, other[0].code) == (0, 0)


def test_an_ordinary_user_may_knock_and_no_more(cluster):
    report = doctor(cluster, "n1", "--peer", "n2", user="alice")
    assert report.of("peer n2")["level"] == "unseen"
    assert report.of("peer n2")["remedy"] == "run this as root"


def test_a_peer_on_which_nobody_waits_is_reached_all_the_same(cluster):
    report = doctor(cluster, "n1", "--peer", "n2")
    line = report.of("peer n2")
    assert line["level"] == "warn"
    assert "netcheck doctor --listen --peer n1" in line["remedy"]
    assert report.code == 0


def test_a_peer_with_another_key(cluster):
    cluster.script("key", "n2", "wrong")
    cluster.script("daemon", "n2", "munged", "restart")
    try:
        with contextlib.suppress(subprocess.TimeoutExpired), listening(cluster, "n2", "n1"):
            report = doctor(cluster, "n1", "--peer", "n2")
            raise subprocess.TimeoutExpired([], 0)  # the other goes on waiting
    finally:
        cluster.script("key", "n2", "right")
        cluster.script("daemon", "n2", "munged", "restart")
    fails(report, "peer n2", "no meeting came about", "its own report names the cause")


def test_a_peer_that_is_not_there(cluster):
    fails(doctor(cluster, "n1", "--peer", "n9"), "name of n9", "n9", "/etc/hosts")
    cluster.script("link", "n2", "down")
    report = doctor(cluster, "n1", "--peer", "n2")
    fails(report, "peer n2", "10.", "860 to 899")


def test_a_file_that_never_answers(cluster):
    """As one on a network filesystem whose server is gone: whoever opens it waits for good."""
    pipe = cluster.folder / "nodes/n1/pipe"
    os.mkfifo(pipe)
    try:
        with cluster.plugged("n1", text="include /run/node/pipe\n"):
            done = cluster.exec("n1", PROGRAM, "doctor", check=False, timeout=30)
    finally:
        pipe.unlink()
    assert (done.returncode, done.stdout) == (3, "")
    assert "a filesystem" in done.stderr
    assert cluster.processes("n1", "netcheck doctor") == []


def test_what_is_asked_wrongly(cluster):
    for options in (["--peer", "n[1-2]"], ["--listen"], ["--config", "/no/such/file"], ["--role", "king"]):
        done = cluster.exec("n1", PROGRAM, "doctor", *options, check=False)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert len(done.stderr.splitlines()) == 1, done.stderr
