"""What tests share: oracles, small data, cases, and ways to run programs."""
