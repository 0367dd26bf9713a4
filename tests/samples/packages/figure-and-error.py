import matplotlib.pyplot as plt

plt.plot([1, 2])
raise ValueError("after the plot")
