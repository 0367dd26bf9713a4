import matplotlib.pyplot as plt

plt.plot([1, 2, 3])
plt.show()
figure, axes = plt.subplots()
axes.bar(["a", "b"], [1, 2])
axes.set_title("second")
print("not shown by hand")
