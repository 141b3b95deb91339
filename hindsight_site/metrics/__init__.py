"""/metrics: what whoever watches the site wants to know, as text for Prometheus.

    requests  what the web processes of this machine served, counted as they serve
    totals    what the database knows of all teams together: recalls, reflections, jobs, tokens
    database  the queue, the connections, the size
    text      the lines themselves

No line names a team, an agent or a person, and none holds text of theirs.
"""
