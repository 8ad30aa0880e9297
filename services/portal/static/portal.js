// Progressive help only: every page works without it.
