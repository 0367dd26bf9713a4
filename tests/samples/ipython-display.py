from IPython.display import HTML, JSON, Markdown, display

display(HTML("<h1>Title</h1>"))
display(Markdown("# Title"), JSON({"n": 1}))
