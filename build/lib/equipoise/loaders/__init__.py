"""One module per data set: upstream bytes to a tidy table, and nothing else."""
