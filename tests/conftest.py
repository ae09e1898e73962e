"""Settings that every test shares."""

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")
# the same examples at every run: a test that passes here passes on the next machine
settings.register_profile("equipoise", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("equipoise")
