"""A team as a file: JSON Lines, one row a line, lossless, signed. `reflection.importing` reads it back."""
