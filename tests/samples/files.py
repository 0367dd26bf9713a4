# What is saved in the working directory comes back as files.
with open("table.csv", "w") as file:
    file.write("a,b\n1,2\n")
