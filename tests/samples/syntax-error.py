total = 0
for number in range(3)
    total += number
