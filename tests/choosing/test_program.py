"""A program as a score: a process for each thread, started again after it has ended; failures in words."""

import os
import shlex
import sys
import threading
import time

import pytest

from gumbelrace.choosing.program import Program
from gumbelrace.errors import EvaluationFailed, InvalidArgument

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes of Unix")

# Does what the example says, and answers with the number of its process if it says nothing.
OBEDIENT = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)["example"]
    if asked == "die":
        sys.exit("oh no")
    if asked == "sleep":
        os.system("sleep 60")
    if asked == "word, then number":
        print("hello", flush=True)
        time.sleep(0.1)
        asked = "number"
    print({"number": 7, "twice": "1\\n2"}.get(asked, os.getpid()), flush=True)
"""


@pytest.fixture
def ask(tmp_path):
    """Give a program; all are closed in the end."""
    made = []

    def start(source=OBEDIENT, timeout=None):
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(source)
        made.append(Program(f"{shlex.quote(sys.executable)} -S {shlex.quote(str(path))}", timeout))
        return made[-1]

    yield start
    for program in made:
        program.close()


def is_running(process):
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    return True


def test_each_thread_has_a_process_of_its_own(ask):
    program, found = ask(), {}

    def work(name):
        found[name] = [program("candidate", n) for n in range(3)]

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(set(answers)) for answers in found.values()} == {1}
    assert len({answers[0] for answers in found.values()}) == 8
    program.close()
    assert not any(is_running(answers[0]) for answers in found.values())


def test_a_process_that_dies_is_a_failure_and_is_started_again(ask):
    program = ask()
    first = program("candidate", "go")
    with pytest.raises(RuntimeError, match=r"ended with status 1 \('oh no'\)"):
        program("candidate", "die")
    assert program("candidate", "go") != first


def test_a_word_is_a_failure_of_its_own_question_only(ask):
    """What still comes after it answers nothing: the process that owes it is ended."""
    program = ask()
    first = program("candidate", "go")
    with pytest.raises(ValueError, match="the program wrote 'hello', which is no number"):
        program("candidate", "word, then number")
    assert not is_running(first)
    assert program("candidate", "go") not in (first, 7.0)


def test_a_hang_is_ended_with_all_that_it_has_started(ask):
    program = ask(timeout=0.5)
    first = program("candidate", "go")
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
        program("candidate", "sleep")
    assert time.monotonic() - began < 30  # the child sleeps for a minute, and holds the pipe
    assert not is_running(first)
    assert program("candidate", "go") != first


def test_a_question_that_nobody_reads_is_a_hang(ask):
    program = ask("import time; time.sleep(60)", timeout=0.5)
    with pytest.raises(TimeoutError, match="no answer"):
        program("candidate", "x" * 10**6)


def test_answers_never_slip_to_another_question(ask):
    program = ask()
    program("candidate", "go")
    assert program("candidate", "twice") == 1.0
    time.sleep(0.2)
    with pytest.raises(EvaluationFailed, match="one line for each that it reads; it also wrote '2'"):
        program("candidate", "go")


# Writes its first number twice, so late that it answers the next question.
SLIPPING = """
import sys, time
for number, line in enumerate(sys.stdin):
    time.sleep(0.2 if number else 0)
    print(number, flush=True)
    if number == 0:
        time.sleep(0.1)
        print(-1, flush=True)
"""


def test_answers_that_have_slipped_are_told_in_the_end(ask):
    program = ask(SLIPPING)
    assert [program("candidate", n) for n in range(3)] == [0.0, -1.0, 1.0]
    with pytest.raises(EvaluationFailed, match=r"it also wrote '2'\. .* begin with a new store"):
        program.conclude()


def test_last_words_do_no_harm(ask):
    program = ask("import sys\nfor line in sys.stdin: print(1, flush=True)\nprint('bye')")
    assert program("candidate", "go") == 1.0
    program.conclude()


def test_a_number_after_a_word_is_not_told_again(ask):
    program = ask("input(); print('hello\\n1', flush=True); input()")
    with pytest.raises(ValueError, match="hello"):
        program("candidate", "go")
    program.conclude()


def test_a_process_that_is_stuck_in_a_question_is_ended(ask):
    """Who writes the question holds the pipe: closing it would wait for ever."""
    program = ask("import time; time.sleep(60)")
    failed = []

    def stuck():
        try:
            program("candidate", "x" * 10**6)
        except EvaluationFailed as error:
            failed.append(error)

    thread = threading.Thread(target=stuck, daemon=True)
    thread.start()
    time.sleep(0.5)
    closing = threading.Thread(target=program.close, daemon=True)
    closing.start()
    closing.join(20)
    thread.join(20)
    assert not closing.is_alive()
    assert "status -9 before it gave any number" in str(failed[0])


def test_ctrl_c_while_processes_are_waited_for_leaves_none(ask, monkeypatch):
    program = ask("import os, time; input(); print(os.getpid(), flush=True); time.sleep(60)")
    process = program("candidate", "go")

    def interrupted(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("gumbelrace.choosing.program._Process.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        program.close()
    assert not is_running(process)


def test_a_program_may_end_after_each_answer(ask):
    program = ask("print(len(input()))")
    assert [program("c", "x" * n) for n in range(3)] == [33.0, 34.0, 35.0]


def test_a_program_that_never_answers_ends_everything(ask):
    program = ask("import sys; sys.exit('no such model')")
    with pytest.raises(EvaluationFailed, match=r"status 1 \('no such model'\) before it gave any number"):
        program("candidate", "go")


@pytest.mark.parametrize("command", ["no-such-program x", "", "unclosed 'quote"])
def test_a_command_that_cannot_be_run(command):
    with pytest.raises(InvalidArgument):
        Program(command)


def test_letters_of_all_kinds_arrive(ask):
    program = ask(
        "import json, sys\nfor line in sys.stdin: print(len(json.loads(line)['example']), flush=True)"
    )
    assert program("ü", "模型\n\u2028\x1b🎉") == 6.0
