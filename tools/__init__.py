"""What maintainers run, beside the project itself."""
