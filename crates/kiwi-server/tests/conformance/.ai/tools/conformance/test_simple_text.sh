# kiwi: version: "1.0.0"
# kiwi: description: Gives a text
echo "This is a simple text response for testing."
