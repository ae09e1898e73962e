"""The studies: what one chapter or paper alone needs. They import the library and never each other."""
