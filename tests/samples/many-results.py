for number in range(150):
    display(number)
