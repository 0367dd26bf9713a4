# Not a statement at all.
