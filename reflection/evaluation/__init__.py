"""Measures masking and screening on labelled data. Pure: a path in, figures out."""
