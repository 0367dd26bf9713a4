raise SystemExit("no such table")
