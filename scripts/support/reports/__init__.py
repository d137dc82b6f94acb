"""How scripts measure and report: timing in turns, Markdown tables, and plots of these."""
