display("first")
display({"second": 2}, "third")
print("between")
"last"
