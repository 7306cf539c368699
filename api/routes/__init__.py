"""The routes, by subject."""

from starlette.convertors import PathConvertor, register_url_convertor


class _IdConvertor(PathConvertor):
    """Whatever stands in a path for an id, slashes included."""

    # Line ends as well, so that an id with one is refused as such: `.*` finds no route for it, or drops the last one.
    regex = "(?s:.*)"


# Before the routes are made, which read their paths then.
register_url_convertor("id", _IdConvertor())
