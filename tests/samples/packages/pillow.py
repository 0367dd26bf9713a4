from PIL import Image

Image.new("RGB", (2, 2), "red")
