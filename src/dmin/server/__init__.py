"""The HTTP service: durable collections of classes and examples behind an API, and a page for people.

Nothing is imported here: `dmin.client` shares `dmin.server.schemas` and must not wait for a database driver.
"""
