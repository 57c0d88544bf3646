# kiwi: version: "1.0.0"
# kiwi: description: Fails
echo "This tool intentionally returns an error for testing" >&2
exit 1
