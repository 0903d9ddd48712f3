"""Programs that benchmarks measure."""
