"""Files are read inside of their folder only, whatever happens to them meanwhile (H-F3, RG-1)."""

import hashlib
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from stores.file_root import FileRefused, FileRoot

CONTENT = b"0123456789"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder, with a file in a folder of it, and a secret beside it."""
    (tmp_path / "secret").write_bytes(b"abcdefghij")
    root = tmp_path / "root"
    (root / "runs").mkdir(parents=True)
    (root / "runs" / "f").write_bytes(CONTENT)
    return root


def read(root: Path, key: str = "runs/f", offset: int = 0, length: int = 100, size_bytes: int | None = 10) -> bytes:
    return FileRoot(root).read(key, offset=offset, length=length, size_bytes=size_bytes)


@pytest.mark.parametrize("name", ["runs/f", "./runs/../runs/f", "absolute", "link inside"])
def test_file_inside_is_found_by_its_real_place(root: Path, name: str) -> None:
    if name == "absolute":
        name = str(root / "runs" / "f")
    elif name == "link inside":
        (root / name).symlink_to(root / "runs" / "f")
    kept = FileRoot(root).find(Path(name))
    assert (kept.key, kept.size_bytes, kept.sha256) == ("runs/f", 10, hashlib.sha256(CONTENT).hexdigest())


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 100, CONTENT), (3, 4, b"3456"), (9, 5, b"9"), (10, 1, b""), (11, 1, b""), (2**63 - 1, 1, b"")],
)
def test_part_of_a_file_is_read(root: Path, offset: int, length: int, expected: bytes) -> None:
    assert read(root, offset=offset, length=length) == expected


def test_folder_itself_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert FileRoot(tmp_path / "link").find(root / "runs" / "f").key == "runs/f"
    assert read(tmp_path / "link") == CONTENT


@pytest.mark.parametrize(
    "path",
    ["../secret", "runs/../../secret", "/etc/passwd", "runs", "", "nowhere", "a\x00b", "\ud800", "x" * 5_000, "loop"],
    ids=lambda path: repr(path)[:30],
)
def test_path_that_leads_out_or_to_no_file_is_refused(root: Path, path: str) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(FileRefused):
        FileRoot(root).find(Path(path))


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "runs/../../secret", "runs", "", ".", "a\x00b", "\ud800"])
def test_key_that_leads_out_or_to_no_file_is_refused(root: Path, path: str) -> None:
    with pytest.raises(FileRefused):
        read(root, path)


def test_link_out_of_the_folder_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    for path in ("out", "up/secret"):
        with pytest.raises(FileRefused):
            FileRoot(root).find(Path(path))
        with pytest.raises(FileRefused):
            read(root, path)


def replace_file(file: Path, secret: Path) -> None:
    file.unlink()
    file.symlink_to(secret)


def replace_folder(file: Path, secret: Path) -> None:
    shutil.rmtree(file.parent)
    (secret.parent / "runs").mkdir()
    (secret.parent / "runs" / "f").write_bytes(b"abcdefghij")
    file.parent.symlink_to(secret.parent / "runs")


def replace_by_pipe(file: Path, secret: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def replace_by_socket(file: Path, secret: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))


def remove(file: Path, secret: Path) -> None:
    file.unlink()


def grow(file: Path, secret: Path) -> None:
    file.write_bytes(CONTENT + b"!")


@pytest.mark.parametrize(
    "change", [replace_file, replace_folder, replace_by_pipe, replace_by_socket, remove, grow], ids=lambda f: f.__name__
)
def test_file_that_changed_after_it_was_found_is_refused(
    root: Path, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    assert read(root) == CONTENT
    change(root / "runs" / "f", tmp_path / "secret")
    with pytest.raises(FileRefused):
        read(root)


def test_refused_reads_leave_no_descriptor_open(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path / "secret")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for key in ("runs/f", "runs", "out", "missing/f", "runs/missing"):
        for size in (10, 9):
            with suppress(FileRefused):
                read(root, key, size_bytes=size)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
