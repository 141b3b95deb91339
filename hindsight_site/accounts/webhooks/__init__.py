"""Telling a team's own systems what happened: signed, retried for a day, logged, and never into a private network.

`emitting` writes a delivery in the transaction of what happened, `delivering` sends it, `actions` manages the hooks.
"""
