# The input comes on standard input, too; what is written to $SANDBOX_OUTPUT is the output.
read -r line
printf '{"sent": %s}' "$line" >"$SANDBOX_OUTPUT"
echo '{"level": "warning", "message": "from bash"}' >/sandbox/log
