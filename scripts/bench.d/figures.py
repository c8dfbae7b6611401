"""Reads records, iperf3's reports and samples for scripts/bench-*, and does their statistics.

Rates are worked out here from the record's completion times, by the definitions of docs/measurement.md and not by the program's own
code: what a bench compares with iperf3 must not be what the program believes of itself.
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    return json.loads(pathlib.Path(path).read_text())


def rank_time(done):
    """Median of the differences of completion times, the first left out; ns."""
    return statistics.median(later - earlier for earlier, later in zip(done, done[1:])) if len(done) > 1 else done[0]


def transfer_time(done):
    """Mean of a transfer's operations since the barrier; the median where that is under mean / 1.25 and no operation took less than half of it; ns."""
    mean, middle = done[-1] / len(done), rank_time(done)
    caught_up = any(later - earlier < middle / 2 for earlier, later in zip(done, done[1:]))
    return middle if mean > 1.25 * middle and not caught_up else mean


def steps(record):
    """(step, teams by id, samples by (batch, rank)) of each measured step of a leader's record."""
    teams = {}
    for done in record["report"]["history"]["done"]:
        step = done["step"]
        if step["kind"] == "form":
            teams.update({team["id"]: team["ranks"] for team in step["teams"]})
        if step["kind"] == "measure":
            samples = {}
            for outcome in done["outcomes"]:
                for batch, sample in zip(outcome["batch"], outcome["samples"]):
                    samples[batch, sample["rank"]] = sample
            yield step, teams, samples


def edges(record):
    """One-way figures by (from, to) node names, bits/s: of each the best of the measurements that lasted 10 ms, as the judge takes it."""
    names = record["nodes"]
    best = {}
    for step, teams, samples in steps(record):
        for batch in step["batches"]:
            for sender, receiver in batch["edges"]:
                done = samples.get((batch["id"], receiver), {}).get("done") or []
                if len(done) != batch["iterations"] or done[-1] < 10e6:
                    continue
                ranks = teams[batch["team"]]
                pair = names[ranks[sender][0]], names[ranks[receiver][0]]
                rate = batch["bytes"] * 8e9 / transfer_time(done)
                best[pair] = max(rate, best.get(pair, 0))
    return best


def gate(record):
    """Each all_gather batch of the gate: (bytes, bus bandwidth in bits/s, seconds of timed operations)."""
    for step, teams, samples in steps(record):
        for batch in step["batches"]:
            if batch["op"] != "all_gather" or step["phase"] != "gate":
                continue
            ranks = len(teams[batch["team"]])
            times = [rank_time(samples[batch["id"], rank]["done"]) for rank in range(ranks)]
            slowest = max(times)
            yield batch["bytes"], batch["bytes"] * 8e9 / slowest * (ranks - 1) / ranks, slowest * batch["iterations"] / 1e9


def busbw(record):
    """Best size whose batch lasted 30 ms (docs/measurement.md): bits/s."""
    return max(rate for _, rate, lasted in gate(record) if lasted >= 0.03)


def interval(statistic, *samples, rounds=10_000):
    """Bootstrap: 95 % interval of statistic(*samples). Seeded: the same samples give the same interval."""
    pick = random.Random(1)
    values = sorted(statistic(*(pick.choices(sample, k=len(sample)) for sample in samples)) for _ in range(rounds))
    return values[int(0.025 * rounds)], values[int(0.975 * rounds)]


def show_line(path):
    print(load(path)["line"])


def show_edge(path, sender, receiver):
    print(f"{edges(load(path))[sender, receiver]:.0f}")


def show_busbw(path):
    print(f"{busbw(load(path)):.0f}")


def show_iperf(path):
    report = load(path)
    if "error" in report:
        sys.exit(f"iperf3: {report['error']}")
    print(f"{report['end']['sum_received']['bits_per_second']:.0f}")


def show_address(node):
    status = subprocess.run([TOP / "scripts/cluster", "status", "--json"], check=True, capture_output=True, text=True)
    print(next(n["rails"][0]["address"] for n in json.loads(status.stdout)["nodes"] if n["name"] == node))


def show_compare(tolerance, *pairs):
    """Pairs of figure and reference, bits/s: prints both medians, the ratio of each pair's extremes, and the judgement."""
    values = [float(value) for value in pairs]
    figures, references = values[0::2], values[1::2]
    ratios = [figure / reference for figure, reference in zip(figures, references)]
    ratio = statistics.median(ratios)
    word = "ok" if abs(ratio - 1) <= float(tolerance) else "MISSED"
    print(
        f"{statistics.median(figures) / 1e6:.1f}\t{statistics.median(references) / 1e6:.1f}"
        f"\t{ratio:.3f} ({min(ratios):.3f}…{max(ratios):.3f})\t{word}"
    )


def show_phases(path):
    """Where the time of a check went, as its leader's record has it."""
    record = load(path)
    for title, phases in (("supervisor", record["phases"]), ("probe", record["report"]["phases"])):
        for phase, took in sorted(phases.items(), key=lambda item: -item[1]):
            print(f"    {title:<10} {phase:<12} {took / 1e6:8.1f} ms")
    for done in record["report"]["history"]["done"]:
        step = done["step"]
        sizes = ", ".join(f"{b['op']} {b['bytes']} B × {b['iterations']}" for b in step.get("batches", []))
        print(f"    step       {step['kind']:<12} {done['took'] / 1e6:8.1f} ms  {sizes}")


def show_took(path):
    print(f"{load(path)['took'] / 1e9:.3f}")


def show_phase(path, phase):
    """Of the supervisor, as its record has it; ms."""
    print(f"{load(path)['phases'][phase] / 1e6:.1f}")


def show_median():
    """Of the numbers on standard input: median, and the least and the most."""
    values = [float(line) for line in sys.stdin]
    print(f"{statistics.median(values):.6g} {min(values):.6g}…{max(values):.6g}")


def show_slice(path):
    print(f"{load(path)['policy']['slice'] / 1e9:.3f}")


def show_largest(path):
    print(max(batch["bytes"] for step, _, _ in steps(load(path)) for batch in step["batches"]))


def free_times(path):
    """Lines "sbatch|srun on|off SECONDS" → seconds by (command, plugin)."""
    times = {}
    for line in pathlib.Path(path).read_text().splitlines():
        command, plugin, seconds = line.split()
        times.setdefault((command, plugin), []).append(float(seconds))
    return times


def show_free_medians(path):
    times = free_times(path)
    for command in ("sbatch", "srun"):
        on, off = times[command, "on"], times[command, "off"]
        low, high = interval(lambda a, b: statistics.median(a) / statistics.median(b), on, off)
        print(
            f"    {command:<7} median with the plugin {statistics.median(on) * 1000:.1f} ms ({len(on)} jobs), without"
            f" {statistics.median(off) * 1000:.1f} ms ({len(off)}), ratio {statistics.median(on) / statistics.median(off):.3f}"
            f" [{low:.3f}, {high:.3f}]"
        )


def show_free_ratio(path, wanted):
    """1 + what the plugin adds to a job of srun / what a batch job takes without it, its interval, judgement."""
    times = free_times(path)

    def ratio(on, off, batch):
        return 1 + (statistics.median(on) - statistics.median(off)) / statistics.median(batch)

    samples = times["srun", "on"], times["srun", "off"], times["sbatch", "off"]
    low, high = interval(ratio, *samples)
    print(f"{ratio(*samples):.3f} [{low:.3f}, {high:.3f}]\t{'ok' if ratio(*samples) <= float(wanted) else 'MISSED'}")


def resident(pid):
    """Most memory a process has had resident, bytes; 0 when it is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def role_of(pid):
    """"probe" or "fabric" for netcheck's own processes, else None."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    if len(words) < 2 or os.path.basename(words[0]) != b"netcheck":
        return None
    return words[1].decode() if words[1] in (b"probe", b"fabric") else None


def watch_memory(out):
    """Until killed: the most that the netcheck processes of one node had resident together, rewritten to `out` as it grows."""
    most = 0
    while True:
        nodes = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            role = role_of(pid)
            if role is None:
                continue
            try:
                space = os.readlink(f"/proc/{pid}/ns/net")
            except OSError:
                continue
            nodes.setdefault(space, []).append((role, resident(pid)))
        for processes in nodes.values():
            total = sum(peak for _, peak in processes)
            if total > most:
                most = total
                parts = ", ".join(f"{role} {peak / 2**20:.1f} MiB" for role, peak in sorted(processes))
                pathlib.Path(out + ".new").write_text(f"{total} {parts}\n")
                os.rename(out + ".new", out)  # whole at every moment: the watcher is killed at any
        time.sleep(0.05)


COMMANDS = {
    "line": show_line,
    "edge": show_edge,
    "busbw": show_busbw,
    "iperf": show_iperf,
    "address": show_address,
    "compare": show_compare,
    "phases": show_phases,
    "took": show_took,
    "phase": show_phase,
    "median": show_median,
    "slice": show_slice,
    "largest": show_largest,
    "free-medians": show_free_medians,
    "free-ratio": show_free_ratio,
    "watch-memory": watch_memory,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
