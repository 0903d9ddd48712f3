"""Scripts that call other people's programs, in the environments of those; nothing of their code."""
