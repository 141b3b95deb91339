"""How much a server bears: a real one, filled, asked by several callers at once, and watched meanwhile.

    make bench-load                               # 10,000 memories, 5 minutes of mixed traffic, 200 teams
    make bench-load ARGS="--memories 100000"
    make bench-load ARGS="--memories 1000 --minutes 0.2 --seconds 3 --teams 20"

It starts `manage.py up` in a folder of its own, as the product runs: embedded PostgreSQL, two web processes, the
queue worker. The callers are threads of the standard library's HTTP client, which costs a tenth of a millisecond a
request; what they use of the machine stands in the result.
"""
