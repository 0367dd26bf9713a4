# The packages that skills use most do their work, not only import.
import io
import json
import os
import traceback


def numpy():
    import numpy as np

    a = np.arange(1_000_000, dtype=np.float64).reshape(1000, 1000)
    assert (a @ np.eye(1000) == a).all()
    assert np.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0]).tolist() == [1.0, 2.0]
    assert abs(np.fft.ifft(np.fft.fft(a[0])) - a[0]).max() < 1e-9
    assert np.random.default_rng(1).normal(size=1000).std() > 0.5


def pandas():
    import pandas as pd

    text = "city,day,rain\nA,2026-01-01,1\nA,2026-01-02,3\nB,2026-01-01,5\n"
    frame = pd.read_csv(io.StringIO(text), parse_dates=["day"])
    assert frame.groupby("city")["rain"].mean().to_dict() == {"A": 2.0, "B": 5.0}
    assert frame.set_index("day").resample("D")["rain"].sum().tolist() == [6, 3]
    frame.to_json("/workspace/frame.json", orient="records")
    assert len(pd.read_json("/workspace/frame.json")) == 3


def matplotlib():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [3, 1, 2], label="a line")
    axes.set_title("Title")
    axes.legend()
    path = os.path.join("/workspace", "figure.png")
    figure.savefig(path)
    with open(path, "rb") as png:
        assert png.read(8) == b"\x89PNG\r\n\x1a\n"


def pillow():
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (640, 480), "white")
    ImageDraw.Draw(image).ellipse((10, 10, 600, 400), fill="red")
    small = image.resize((64, 48), Image.Resampling.LANCZOS)
    for kind in ("PNG", "JPEG", "WEBP", "GIF"):
        packed = io.BytesIO()
        small.save(packed, kind)
        packed.seek(0)
        assert Image.open(packed).size == (64, 48), kind


def lxml():
    from lxml import etree, html

    tree = etree.fromstring("<shop><item price='3'>tea</item><item price='9'>cake</item></shop>")
    assert tree.xpath("//item[@price > 5]/text()") == ["cake"]
    assert html.fromstring("<p>one<p>two").xpath("count(//p)") == 2.0
    style = etree.XML(
        '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform">'
        '<x:template match="/"><n><x:value-of select="sum(//@price)"/></n></x:template></x:stylesheet>'
    )
    assert str(etree.XSLT(style)(tree).getroot().text) == "12"


seen = {}
for part in (numpy, pandas, matplotlib, pillow, lxml):
    try:
        part()
        seen[part.__name__] = "ok"
    except BaseException:
        seen[part.__name__] = traceback.format_exc()
with open(os.environ["SANDBOX_OUTPUT"], "w") as out:
    json.dump(seen, out)
