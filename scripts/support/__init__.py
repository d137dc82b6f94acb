"""What the scripts share: benchmarks and reproductions take their peers, graphs, algorithms and reports from here."""
