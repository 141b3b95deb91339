"""Faults, in real processes: what happens to a running site, and whether it comes back by itself with nothing lost.

    make chaos                                    # all scenarios: half an hour
    make chaos ARGS=--list
    make chaos ARGS="--only kill-database --only full-disk"

Each scenario has callers that go on writing and recalling, does its harm, waits until the site works again without
anybody's help, and then holds the rows against what the callers were told: no acknowledged write may be missing, no
write and no reflection may have been done twice or be left undone, and `check_invariants` must find nothing.
"""
