def inner(number):
    return 10 / number


def outer():
    return inner(0)


print("before")
outer()
