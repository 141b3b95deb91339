"""Looking across episodes for what repeats: weekly for each scope, and on request for chosen ones.

`patterns` finds repeats without a model (pure), `gathering` reads what to look at, `looking` runs one look from
its claim to its end state, `weekly` asks for the looks that are due. A look proposes: it writes candidates that
cite every episode they rest on, and deletes nothing.
"""
