"""The databases of the collection, for SQL: shared by the scripts that compare reports with it."""

import gzip
import pathlib
import sqlite3
import tempfile


class Database:
    """Read-only, also of a compressed file."""

    def __init__(self, path):
        self.folder = tempfile.TemporaryDirectory()
        plain = pathlib.Path(self.folder.name) / "db"
        data = path.read_bytes()
        plain.write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
        self.connection = sqlite3.connect(f"file:{plain}?mode=ro&immutable=1", uri=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.folder.cleanup()

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()

    def one(self, sql):
        return self.rows(sql)[0][0]
