"""The command; see the package."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from tests.chaos import __doc__ as explanation
from tests.chaos.places import CannotStage
from tests.chaos.running import Outcome, run
from tests.chaos.scenarios import ALL
from tests.running_site import ROOT


def main() -> None:
    given = _arguments()
    if given.list:
        print("\n".join(f"{scenario.name:26} {scenario.says}" for scenario in ALL))
        return
    chosen = [scenario for scenario in ALL if not given.only or scenario.name in given.only]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))  # and so stops what it has started
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hindsight_site.settings")
    folder = Path(tempfile.mkdtemp(prefix="hindsight-chaos-", dir=given.folder))
    folder.chmod(0o755)  # the database's user goes through it
    outcomes: list[Outcome] = []
    print(_head(), flush=True)
    for where, group in groupby(chosen, lambda scenario: scenario.where):
        scenarios = list(group)
        place_folder = folder / where.__name__
        place_folder.mkdir()
        done = len(outcomes)
        try:
            with where(place_folder) as place:
                place.jobs, place.outage = given.jobs, given.outage
                for scenario in scenarios:
                    outcomes.append(run(scenario, place))
                    print(_line(outcomes[-1]), flush=True)
        except CannotStage as reason:
            print("".join(f"{scenario.name:26} skipped: {reason}\n" for scenario in scenarios), end="", flush=True)
        except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:  # of a start or a stop
            missing = scenarios[len(outcomes) - done :] or scenarios[-1:]
            outcomes += [Outcome(scenario.name, wrong=[f"{error!r}"[:500]]) for scenario in missing]
            print("\n".join(map(_line, outcomes[-len(missing) :])), flush=True)
    failed = [outcome for outcome in outcomes if outcome.wrong]
    if given.json:
        Path(given.json).write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n")
    if failed or given.keep:
        print(f"Logs and ledgers are in {folder}.")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(f"{len(failed)} of {len(outcomes)} scenarios failed." if failed else 0)


def _head() -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    made_of = f"{len(os.sched_getaffinity(0))} cores, commit {commit.stdout.strip() or 'unknown'}"
    return (
        f"{made_of}, load {os.getloadavg()[0]:.1f}, {time.strftime('%F %T')}. "
        "Seconds, from the end of the harm; gap: the longest time without an answered recall.\n"
        f"{'scenario':26} {'harm':>6} {'gap':>6} {'writes':>7} {'reflects':>8} {'all done':>8} {'acked':>6} {'load':>5}"
        "  result"
    )


def _line(outcome: Outcome) -> str:
    result = "; ".join(outcome.wrong) if outcome.wrong else "ok"
    tried = f" (tried again: {outcome.retries})" if outcome.retries else ""
    return (
        f"{outcome.name:26} {outcome.harm:6.1f} {outcome.gap:6.1f} {outcome.writes_after:7.1f} "
        f"{outcome.reflects_after:8.1f} {outcome.all_done_after:8.1f} {outcome.acknowledged:6} "
        f"{os.getloadavg()[0]:5.1f}  {result}{tried}"
    )


def _arguments() -> argparse.Namespace:
    names = [scenario.name for scenario in ALL]
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="this scenario; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the scenarios, and do nothing")
    parser.add_argument("--jobs", type=int, default=10_000, help="of queue-many (default: %(default)s)")
    parser.add_argument("--outage", type=float, default=30.0, help="seconds of an outage (default: %(default)s)")
    parser.add_argument("--json", help="write the results to this file, too")
    parser.add_argument("--folder", help="where to make the data folders (default: the system's place)")
    parser.add_argument("--keep", action="store_true", help="leave logs and ledgers there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
