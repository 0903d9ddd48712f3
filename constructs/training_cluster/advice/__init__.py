"""Advice that `cdk synth` shows: costs, and settings that work and surprise."""
