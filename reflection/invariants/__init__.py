"""What must always hold between the tables of a team, whatever crashed: looked for nightly, repaired where safe."""
