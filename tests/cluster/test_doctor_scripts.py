"""`netcheck doctor` on what Slurm starts: the files of Prolog=, the script that calls netcheck, the words of the plugin's line. While
one of these is wrong no job runs here: slurmd would drain the node."""

import re

import pytest
from conftest import CONFIG, MIN, PROLOGS
from report import PROGRAM, doctor, fails

SCRIPT = f"{PROLOGS}/netcheck"
PATTERN = f"Prolog={PROLOGS}/*"


@pytest.fixture
def script(cluster):
    """Puts the example in its place, with `changes`: its lines by what they begin with."""
    example = (cluster.folder / "root/share/netcheck/prolog.d/netcheck").read_text()

    def put(mode=0o755, **changes):
        text = example
        for name, value in {"program": PROGRAM, **changes}.items():
            text, changed = re.subn(rf"(?m)^{name}=.*", f"{name}={value}", text)
            assert changed == 1, name
        cluster.prolog("netcheck", text)
        (cluster.folder / SCRIPT.lstrip("/")).chmod(mode)

    yield put
    cluster.prolog("netcheck", None)


def test_a_script_that_is_right(cluster, script):
    script()
    report = doctor(cluster, "n1")
    assert report.levels("warn", "unseen", "fail") == set(), report.whole["findings"]
    assert report.of("Prolog")["why"] == f"{PATTERN} fits 2 files, which can be executed"
    assert SCRIPT in report.of("Prolog script")["why"]
    assert "Prolog script's limit" in report.levels("ok")


def test_a_script_that_cannot_be_executed_is_named_once(cluster, script):
    script(mode=0o644)
    report = doctor(cluster, "n1")
    fails(report, "Prolog", f"{PATTERN} fits {SCRIPT}, which cannot be executed", f"chmod 0755 {SCRIPT}")
    assert [line["what"] for line in report.whole["findings"] if line["level"] == "fail"] == ["Prolog"]
    assert doctor(cluster, "ctl").levels("fail") == set()  # no prolog runs there


def test_a_pattern_that_fits_nothing(cluster):
    site = cluster.folder / PROLOGS.lstrip("/") / "site"
    away = cluster.folder / "home/site.away"
    site.rename(away)
    try:
        report = doctor(cluster, "n1")
    finally:
        away.rename(site)
    fails(report, "Prolog", f"{PATTERN} fits no file on this node", "slurm.conf")


@pytest.mark.parametrize(
    "changes, level, why, remedy",
    [
        ({"program": "/nowhere/netcheck"}, "fail", "/nowhere/netcheck: there is no such file", f"program= in {SCRIPT}"),
        ({"program": "netcheck"}, "fail", "no absolute path", f"program= in {SCRIPT}"),
        ({"limit": "30s"}, "fail", "limit=30s is no number of seconds", "limit=25"),
        ({"config": "/etc/other.toml"}, "warn", "checks read /etc/other.toml", "netcheck doctor --config /etc/other.toml"),
    ],
)
def test_a_script_with_a_slip(cluster, script, changes, level, why, remedy):
    script(**changes)
    report = doctor(cluster, "n1")
    line = report.of("Prolog script")
    assert line["level"] == level and why in line["why"] and remedy in line["remedy"], line
    assert report.code == (1 if level == "fail" else 0)


def test_a_script_that_ends_checks_before_they_have_a_verdict(cluster, script):
    script(limit="5")
    fails(doctor(cluster, "n1"), "Prolog script's limit", "limit=5 is below max_time (20s) and 2s", "limit=25")


@pytest.mark.parametrize(
    "word, why",
    [
        ("timout=30", "'timout=30': unknown argument 'timout', did you mean 'timeout='?; the plugin ignores it, and timeout=25 counts"),
        ("timeout=300", "'timeout=300': timeout= must be whole seconds from 1 to 120; the plugin ignores it, and timeout=25 counts"),
        ("run_directory=run", "the plugin ignores it, and run_directory=/run/netcheck counts"),
        ("verbose", "'verbose': "),
    ],
)
def test_a_word_that_the_plugin_ignores(cluster, word, why):
    line = (cluster.folder / "nodes/n1/plugstack.conf").read_text().rstrip()
    with cluster.plugged("n1", text=f"{line} {word}\n"):
        report = doctor(cluster, "n1")
    found = report.of("plugstack.conf")
    assert found["level"] == "warn" and why in found["why"], found
    assert found["remedy"] == "mend the word, or take it out"
    assert report.code == 0 and report.levels("warn") == {"plugstack.conf"}


def test_every_setting_with_where_it_comes_from(cluster):
    cluster.configure(CONFIG + '[action]\naction = "hold"\n')
    text = cluster.exec("n1", PROGRAM, "doctor", "--settings").stdout
    settings = doctor(cluster, "n1").whole["settings"]
    for one in settings:
        assert re.search(rf"(?m)^\s*{one['key']} = .*{re.escape(one['source'])}", text), one
    given = {one["key"]: (one["value"], one["source"]) for one in settings if one["source"] != "built-in"}
    # `fabric` is what every test's file says: Cluster.configure.
    assert given == {
        "min": (MIN, "/etc/netcheck/netcheck.toml:3"), "action": ("hold", "/etc/netcheck/netcheck.toml:5"),
        "fabric": ("ucx", "/etc/netcheck/netcheck.toml:8"),
    }  # fmt: skip
    assert {"max_actions_per_hour", "run_directory", "probe_user"} <= {one["key"] for one in settings}
