"""Loaders of collections that more than one study records its systems on."""
