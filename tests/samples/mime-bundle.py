class Chart:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "a chart", "text/html": "<div></div>", "application/x-own": "not known"}, {"width": 1}


Chart()
