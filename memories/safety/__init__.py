"""What keeps poison and private data out: masking and screening. Pure; every writing path goes through them."""
