"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil

from tests.evals.load import __doc__ as explanation
from tests.evals.load import stages
from tests.running_site import ROOT, Site

# The limits that protect a server from one caller would measure themselves; they stay in the way of each request.
SETTINGS = {
    "RATE_LIMIT_TOKEN_PER_MINUTE": "6000000",
    "RATE_LIMIT_TOKEN_BURST": "6000000",
    "RATE_LIMIT_TEAM_PER_MINUTE": "6000000",
    "RATE_LIMIT_TEAM_BURST": "6000000",
    "QUOTA_MEMORIES": "0",
    "QUOTA_TRACES_A_DAY": "0",
    "LOG_LEVEL": "WARNING",
}


def main() -> None:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))  # and so stops what it has started
    folder = Path(tempfile.mkdtemp(prefix="hindsight-load-", dir=given.folder))
    site = Site(folder / "data", SETTINGS)
    try:
        site.start()
        result = {"machine": _machine(), "settings": vars(given) | {"folder": None}, **_measure(site, given)}
    finally:
        site.stop()
        if given.keep:
            say(f"The data folder is {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if given.json:
        Path(given.json).write_text(json.dumps(result, indent=1) + "\n")
    print(_table(result))
    errors = sum(stage["errors"] for stage in [*result["recalls"], result["mixed"], result["many_teams"]] if stage)
    sys.exit(f"{errors} errors." if errors else 0)


def _measure(site: Site, given: argparse.Namespace) -> dict[str, Any]:
    say(f"Started in {site.seconds_to_start:.1f} s. Making {given.teams} teams.")
    token, *others = stages.make_teams(site, given.teams + 1)
    say(f"Filling one of them with {given.memories:,} memories.")
    filled = stages.fill(site, token, 0, given.memories, say)
    site.run("vector_indexes")
    recalls = []
    stages.recalls(site, token, given.memories, 2, 2.0)  # what is loaded at first use
    for callers in given.callers:
        say(f"Recalls by {callers} at once.")
        recalls.append(stages.recalls(site, token, given.memories, callers, given.seconds).summary())
    mixed = None
    if given.minutes:
        say(f"Mixed traffic for {given.minutes:g} minutes.")
        run, watched = stages.mixed(site, token, given.memories, given.mixed_callers, given.minutes * 60)
        mixed = run.summary() | watched
    many = None
    if others:
        say(f"{len(others)} teams at once.")
        many = stages.many_teams(site, others, max(given.seconds * 2, 10.0)).summary()
    say("Checking the rows.")
    checked = site.run("check_invariants").strip().splitlines()[-1]
    return {"filled": filled, "recalls": recalls, "mixed": mixed, "many_teams": many, "invariants": checked}


def _machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": models[0].partition(":")[2].strip() if models else platform.processor(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        "commit": (commit.stdout.strip() or "unknown"),
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def _table(result: dict[str, Any]) -> str:
    machine, filled, mixed = result["machine"], result["filled"], result["mixed"]
    lines = [
        "",
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, Python {machine['python']}, "
        f"commit {machine['commit']}, load before {machine['load_average_before']}",
        f"filled with {filled['memories']:,} memories, {filled['a_second']:.0f} a second",
        "",
        f"{'':26} {'callers':>7} {'calls/s':>8} {'p50':>7} {'p95':>7} {'p99':>7} {'longest':>8} {'n':>7} "
        f"{'errors':>6} {'degraded':>8} {'caller':>7} {'load':>5}",
    ]
    for name, stage in [("recalls", one) for one in result["recalls"]] + [
        ("mixed", mixed),
        ("many teams", result["many_teams"]),
    ]:
        for kind, wait in stage["milliseconds"].items() if stage else ():
            lines.append(
                f"{f'{name}: {kind}':26} {stage['callers']:7} {wait['n'] / stage['seconds']:8.1f} {wait['p50']:7.1f} "
                f"{wait['p95']:7.1f} {wait['p99']:7.1f} {wait['longest']:8.1f} {wait['n']:7} {stage['errors']:6} "
                f"{stage['degraded']:8} {stage['callers_used_of_one_core']:7.0%} {stage['load_average']:5}"
            )
        if stage and stage["what_failed"]:
            lines.append(f"    failed: {stage['what_failed']}")
    if mixed:
        lines += [
            "",
            f"queue after the mixed traffic: {mixed['queue']['left_at_the_end']} tasks, worked off in "
            f"{mixed['queue']['seconds_to_work_it_off']} s",
            "",
            f"{'memory (PSS, MB)':40} {'start':>8} {'end':>8} {'most':>8} {'a minute':>9}",
            *(
                f"{one['process']:40} {one['start']:8.1f} {one['end']:8.1f} {one['most']:8.1f} {one['slope']:+9.2f}"
                for one in mixed["memory_mb"]
            ),
        ]
    return "\n".join([*lines, "", result["invariants"]])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.evals.load", description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=10_000, help="in one team (default: %(default)s)")
    parser.add_argument("--callers", type=int, nargs="*", default=[1, 4, 16], help="of recalls (default: 1 4 16)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of recalls for each of them (default: 15)")
    parser.add_argument("--minutes", type=float, default=5.0, help="of mixed traffic; 0: none (default: 5)")
    parser.add_argument("--mixed-callers", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--teams", type=int, default=200, help="at once; 0: none (default: %(default)s)")
    parser.add_argument("--json", help="write the result to this file, too")
    parser.add_argument("--folder", help="where to make the data folder (default: the system's place)")
    parser.add_argument("--keep", action="store_true", help="leave the data folder there")
    return parser.parse_args()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
