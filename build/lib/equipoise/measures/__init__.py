"""One module per family of measures: an array kernel and a function of tidy tables each."""
