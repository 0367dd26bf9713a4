class Broken:
    def __repr__(self):
        raise RuntimeError("no text")

    def _repr_html_(self):
        raise RuntimeError("no html")


Broken()
