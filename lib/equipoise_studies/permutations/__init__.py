"""Permuting the utterances of a scripted conversation (Faggioli et al., ECIR 2022)."""
