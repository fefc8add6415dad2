"""The words: typed frames for everything that crosses a stage."""
