class Everything:
    def __repr__(self):
        return "Everything()"

    def _repr_markdown_(self):
        return "**bold**"

    def _repr_latex_(self):
        return r"$\frac{1}{2}$"

    def _repr_svg_(self):
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

    def _repr_json_(self):
        return {"n": 1}

    def _repr_png_(self):
        return b"\x89PNG"

    def _repr_jpeg_(self):
        return b"\xff\xd8"

    def _repr_pdf_(self):
        return b"%PDF"

    def _repr_javascript_(self):
        return "alert(1)"


Everything()
