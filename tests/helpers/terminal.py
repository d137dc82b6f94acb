"""A terminal of any width, and what is shown on it."""

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Literal

import pytest
from helpers.waiting import wait_until


class Screen:
    """What was written to the terminal so far; whole once the terminal is closed."""

    def __init__(self) -> None:
        self.read = bytearray()

    @property
    def text(self) -> str:
        """All of it."""
        return self.read.decode(errors="replace")

    def wait_for(self, text: str) -> None:
        """Wait until the text is shown."""
        wait_until(lambda: text in self.text)

    @property
    def lines(self) -> list[str]:
        """The lines in the order written, each state of one that was written over."""
        return [line.strip() for line in self.text.replace("\r", "\n").split("\n") if line.strip()]


@contextmanager
def terminal(
    monkeypatch: pytest.MonkeyPatch, name: Literal["stdout", "stderr"], columns: int = 80, *, silence: float = 3600
) -> Iterator[Screen]:
    """Let a standard stream be a terminal of so many columns, whose bars are drawn at every step.

    Work is announced after so many seconds of silence.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
    screen = Screen()

    def take() -> None:
        try:
            while part := os.read(ours, 2**16):
                screen.read.extend(part)
        except OSError:  # closed
            pass

    reader = Thread(target=take)
    reader.start()
    try:
        with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as stream:
            patch.setattr(sys, name, stream)
            patch.setattr("treeparse.progress.DRAWN_EVERY", 0)
            patch.setattr("treeparse.progress.SILENCE", silence)
            patch.setattr("treeparse.progress.SHORT", 0)
            yield screen
    finally:
        reader.join()
        os.close(ours)
