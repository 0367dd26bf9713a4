# A script that calls its own main is not called a second time.
def main():
    print("once")


if __name__ == "__main__":
    main()
