"""How good recall, masking and screening are, measured on data. Pure but for `runs`, which asks the real recall."""
