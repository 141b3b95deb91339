"""Long work as rows: asked for, claimed, carried on in turns, ended where everybody can see it."""
