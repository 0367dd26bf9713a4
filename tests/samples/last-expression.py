numbers = [1, 2, 3]
{"sum": sum(numbers), "max": max(numbers)}
