"""Scripts that call other projects' programs in their environments; they contain none of their code."""
