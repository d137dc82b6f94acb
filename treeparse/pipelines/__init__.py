"""The parser as a component of other libraries' pipelines, which find each module by its entry point."""
