"""Compares a deployed cluster with the claims that no rehearsal can prove."""
