"""Everything that crosses a boundary between programs, and how it is checked."""
