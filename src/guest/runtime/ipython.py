"""What code imports from `IPython.display`, where IPython is not installed."""
import base64
import json

from _skillbox.results import display

__all__ = ["display", "HTML", "Markdown", "Latex", "Math", "SVG", "JSON", "Javascript", "Image", "Pretty", "clear_output"]


class _Shown:
    def __init__(self, data=None, filename=None, **options):
        if data is None and filename is not None:
            with open(filename, encoding="utf-8") as file:
                data = file.read()
        self.data = data

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"


class HTML(_Shown):
    def _repr_html_(self):
        return self.data


class Markdown(_Shown):
    def _repr_markdown_(self):
        return self.data


class Latex(_Shown):
    def _repr_latex_(self):
        return self.data


class Math(_Shown):
    def _repr_latex_(self):
        return f"$\\displaystyle {self.data}$"


class SVG(_Shown):
    def _repr_svg_(self):
        return self.data


class JSON(_Shown):
    def _repr_json_(self):
        return json.loads(self.data) if isinstance(self.data, str) else self.data


class Javascript(_Shown):
    def _repr_javascript_(self):
        return self.data


class Pretty(_Shown):
    def __repr__(self):
        return str(self.data)


class Image:
    def __init__(self, data=None, filename=None, format=None, **options):
        if isinstance(data, str) and filename is None:
            filename, data = data, None
        if data is None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data

    __repr__ = _Shown.__repr__

    def _repr_mimebundle_(self, include=None, exclude=None):
        kind = "image/jpeg" if self.data[:2] == b"\xff\xd8" else "image/png"
        return {kind: base64.b64encode(self.data).decode()}


def clear_output(wait=False):
    """There is nothing to clear."""


def get_ipython():
    return None
