"""What crosses a boundary, and how it is judged; each part is imported by its own name."""
