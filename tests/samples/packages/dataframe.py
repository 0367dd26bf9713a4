import pandas as pd

pd.DataFrame({"city": ["Bern", "Oslo"], "people": [134_794, 709_037], "since": pd.to_datetime(["1191-01-01", None])})
