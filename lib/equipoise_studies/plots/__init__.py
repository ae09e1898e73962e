"""Figures of measures that several studies and the command draw."""
