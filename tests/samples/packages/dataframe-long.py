import pandas as pd

frame = pd.DataFrame({"n": range(5000)})
display(frame)
