def again():
    return again()


again()
