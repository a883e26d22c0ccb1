"""The stages of a build, one a file: a typed folder in, another out."""
