"""A score that asks a program: it reads a question a line, as JSON, and writes a number a line.

Each thread that asks has a process of its own, which is started again after it has ended. A process belongs
to a group of its own: Ctrl-C does not reach it, and whatever it has started ends with it. Answers are told
apart by nothing but their order: a process that writes anything else is not asked again.
"""

import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, cast

from gumbelrace.errors import EvaluationFailed, InvalidArgument

# Seconds that processes have to end after nothing more is asked.
LAST_SECONDS = 2.0
LONGEST_SHOWN = 200
END = ""  # in place of a line
TOO_MANY = (
    "the program must write one line for each that it reads; it also wrote {}. Scores that it gave before "
    "may be those of other questions: mend it, and begin with a new store"
)


class Program:
    """A score that a program gives.

    It reads ``{"candidate": ..., "example": ...}`` from each line of its standard input, and writes a line
    with a number for each, and nothing else, at once: a program must flush what it writes. It may end after
    an answer. What it writes to standard error is shown if it fails.

    Parameters
    ----------
    command : str
        The program and its arguments, as in a shell, which is not used.
    timeout : float, optional
        Seconds after which an answer has failed and the process is ended.

    Examples
    --------
    >>> import sys
    >>> program = Program(f'{sys.executable} -c "print(len(input()))"')
    >>> program("a", "b"), program("a", "bcd")
    (34.0, 36.0)
    >>> program.close()
    """

    def __init__(self, command: str, timeout: float | None = None) -> None:
        self._command, self._timeout = _words(command), timeout
        self._own, self._starting = threading.local(), threading.Lock()
        self._processes: list[_Process] = []
        self._has_answered = False

    def __call__(self, candidate: Any, example: Any) -> float:
        """Ask the process of this thread."""
        question = json.dumps({"candidate": candidate, "example": example})
        try:
            number = self._answer(question)
        except _Ended as error:
            if self._has_answered:
                raise
            # It is not the candidate that is wrong.
            raise EvaluationFailed(f"the program {error} before it gave any number") from None
        self._has_answered = True
        return number

    def _answer(self, question: str) -> float:
        try:
            return self._process().ask(question, self._timeout)
        except _Retired:
            return self._process().ask(question, self._timeout)

    def _process(self) -> "_Process":
        process: _Process | None = getattr(self._own, "process", None)
        if process is None or process.has_ended:
            process = self._own.process = _Process(self._command)
            with self._starting:
                self._processes = [one for one in self._processes if not one.has_ended] + [process]
        return process

    def close(self) -> None:
        """End all processes, those at once that owe an answer."""
        latest = time.monotonic() + LAST_SECONDS
        for process in self._processes:
            process.finish()
        try:
            for process in self._processes:
                process.wait(max(latest - time.monotonic(), 0.0))
        finally:  # whatever has happened, none shall be left
            for process in self._processes:
                process.end()

    def conclude(self) -> None:
        """End all processes; raise if one has given more numbers than it was asked for."""
        trusted = [process for process in self._processes if not process.has_ended]
        self.close()
        for process in trusted:
            process.refuse_more_numbers()


class _Ended(RuntimeError):
    """A process has ended before it gave an answer."""


class _Retired(Exception):
    """A process has ended without an error, after its last answer."""


class _Process:
    """A running process, what it answers, and the last lines it has written to standard error."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._popen = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise EvaluationFailed(f"{command[0]} cannot be run: {error.strerror}") from error
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._complaints: deque[str] = deque(maxlen=20)
        self._answers, self._owes_answer = 0, False
        self.has_ended, self._is_late = False, False
        self._questions = cast(IO[bytes], self._popen.stdin)
        self._answering = _reading(cast(IO[bytes], self._popen.stdout), self._lines.put)
        self._complaining = _reading(cast(IO[bytes], self._popen.stderr), self._complaints.append)

    def ask(self, question: str, timeout: float | None) -> float:
        """Give the number that answers a question, or raise."""
        self._refuse_more_lines()
        self._owes_answer = True
        watch = threading.Timer(timeout or 0.0, self._is_too_late)
        if timeout is not None:
            watch.start()
        with suppress(OSError):  # it has ended, which the answer shows
            self._questions.write(f"{question}\n".encode())
            self._questions.flush()
        answer = self._lines.get()
        watch.cancel()
        self._owes_answer = False
        if self._is_late:
            self.end()
            raise TimeoutError(f"the program gave no answer within {timeout:g} s")
        return self._number(self._checked(answer))

    def _number(self, line: str) -> float:
        try:
            return float(line)
        except ValueError:
            self.end()  # the answer may be still to come: it would be that to the next question
            raise ValueError(
                f"the program wrote {_short(line)}, which is no number; standard error is for all else"
            ) from None

    def _refuse_more_lines(self) -> None:
        """Stop if something was written that nobody asked for: it would answer the next question."""
        with suppress(queue.Empty):
            line = self._checked(self._lines.get_nowait())
            self.end()
            raise EvaluationFailed(TOO_MANY.format(_short(line)))

    def refuse_more_numbers(self) -> None:
        """Stop if a number is left after the last: answers have slipped. Other last words do no harm."""
        self._answering.join(LAST_SECONDS)
        with suppress(queue.Empty):
            while True:
                line = self._lines.get_nowait()
                if _is_number(line):
                    raise EvaluationFailed(TOO_MANY.format(_short(line)))

    def _checked(self, line: str) -> str:
        if line != END:
            self._answers += 1
            return line
        self.end(LAST_SECONDS)
        if self._popen.returncode == 0 and self._answers:
            raise _Retired
        self._complaining.join(LAST_SECONDS)
        complaint = next((text for text in reversed(self._complaints) if text.strip()), "")
        said = f" ({_short(complaint)})" if complaint else ""
        raise _Ended(f"ended with status {self._popen.returncode}{said}")

    def _is_too_late(self) -> None:
        self._is_late = True
        _kill(self._popen)

    def finish(self) -> None:
        """Tell it that nothing more will be asked; who asks now must not be waited for."""
        self.has_ended = True
        if self._owes_answer:
            _kill(self._popen)
            return
        with suppress(OSError):
            self._questions.close()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but no longer than some seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)

    def end(self, seconds: float = 0.0) -> None:
        """See that it ends within some seconds."""
        self.finish()
        self.wait(seconds)
        _kill(self._popen)
        self._popen.wait()


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidArgument(f"the command {command!r} cannot be read ({error})") from error
    if not words or shutil.which(words[0]) is None:
        raise InvalidArgument(f"there is no program {words[0] if words else command!r} to be run")
    return words


def _reading(stream: IO[bytes], keep: Callable[[str], None]) -> threading.Thread:
    """Keep lines as they come, and in the end an empty text."""

    def read() -> None:
        with stream:
            for line in stream:
                keep(line.decode(errors="replace"))
        keep(END)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a process with all that it has started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _is_number(line: str) -> bool:
    try:
        float(line)
    except ValueError:
        return False
    return True


def _short(line: str) -> str:
    text = " ".join(line.split())
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…")
