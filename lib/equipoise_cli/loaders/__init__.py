"""Loaders that only commands need: chat logs, exports of annotation tools, files of the moment."""
