"""The parser inside other libraries' pipelines; each module needs its library and is found by it."""
