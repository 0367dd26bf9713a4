echo "to stdout: $#"
echo "to stderr" >&2
