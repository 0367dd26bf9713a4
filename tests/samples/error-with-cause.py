try:
    {}["missing"]
except KeyError as error:
    raise RuntimeError("there is no such setting") from error
