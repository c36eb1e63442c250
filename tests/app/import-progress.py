"""`tapedeck import` of a large file: how far it is, for a program that reads it and on a terminal; a
signal ends it and leaves nothing that is half made, whichever command imports.

    import-progress.py TAPEDECK

SPDX-License-Identifier: MIT
"""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

tapedeck = sys.argv[1]
CANCELLED = 'tapedeck: import: cancelled; nothing was written\n'


def write_trace(path, n):
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{"traceEvents": [\n')
        file.write(',\n'.join('{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":1,"ts":%d,"dur":7}' % (i % 50, i * 10)
                              for i in range(n)))
        file.write(']}')


def start(*args, **more):
    return subprocess.Popen([tapedeck, *args], stdin=subprocess.DEVNULL, text=True, **more)


def kept(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def clear():
    """What was made is made again."""
    for path in kept(scratch):
        if path not in alone:
            os.remove(path)


def stop_while_it_writes(child):
    """Its tape is there, under whatever name, so it has begun."""
    while kept(scratch) == alone:
        assert child.poll() is None
    child.send_signal(signal.SIGSTOP)


def end_while_it_reads(number, *args):
    """Give it the signal when it has said that it is reading; its status and last words."""
    child = start(*args, '--progress', stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline().endswith(' reading\n')
    child.send_signal(number)
    _, error = child.communicate()
    return child.returncode, error


with tempfile.TemporaryDirectory() as scratch:
    large, tape = os.path.join(scratch, 'large.json'), os.path.join(scratch, 'a.tdtape')
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')
    write_trace(large, 300000)
    alone = kept(scratch)

    # A signal ends it, and what was not there is not there.
    for number in signal.SIGINT, signal.SIGTERM:
        assert end_while_it_reads(number, 'import', large, '-o', tape) == (128 + number, CANCELLED)
        assert kept(scratch) == alone, kept(scratch)

    # A signal that is ignored, as behind nohup, stays so.
    child = start('import', large, '--progress', '-o', tape, stdout=subprocess.PIPE,
                  preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert child.stdout.readline().endswith(' reading\n')
    child.send_signal(signal.SIGINT)
    child.communicate()
    assert child.returncode == 0, child.returncode
    os.remove(tape)

    # What it does, and how far that is: from nothing to all, never back.
    child = start('import', large, '--progress', '-o', tape, stdout=subprocess.PIPE)
    *lines, summary = child.communicate()[0].splitlines()
    assert child.returncode == 0 and summary.startswith(tape), (child.returncode, summary)
    said = [re.fullmatch(r'(\d+) of 1000 (reading|arranging|writing)', line).groups() for line in lines]
    stages = [stage for stage, before in zip((s for _, s in said), [None] + [s for _, s in said])
              if stage != before]
    assert stages == ['reading', 'arranging', 'writing'], stages
    for stage in stages:
        parts = [int(part) for part, of in said if of == stage]
        assert parts == sorted(set(parts)) and parts[-1] <= 1000, (stage, parts)
    assert sum(of == 'reading' for _, of in said) > 10 and said[-1] == ('1000', 'writing'), said[-1]

    # An older tape stays as it was.
    with open(tape, 'rb') as file:
        older = file.read()
    status, error = end_while_it_reads(signal.SIGINT, 'import', large, '-f', '-o', tape)
    assert (status, error) == (130, CANCELLED)
    with open(tape, 'rb') as file:
        assert file.read() == older
    os.remove(tape)

    # Who read the progress has gone: nobody wants the tape.
    child = start('import', large, '--progress', '-o', tape, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read().startswith(CANCELLED) and child.wait() != 0
    assert kept(scratch) == alone, kept(scratch)

    # On a terminal it is a line that goes away; what takes less than a second says nothing, and
    # what is no terminal hears nothing.
    for args in (['import', large, '-o', tape], ['info', large]):
        for slow in True, False:
            clear()
            master, slave = pty.openpty()
            child = start(*args, stdout=subprocess.DEVNULL, stderr=slave)
            os.close(slave)
            if slow:  # it takes as long as it stands still
                stop_while_it_writes(child)
                time.sleep(1.1)
                child.send_signal(signal.SIGCONT)
            said = b''
            try:
                while part := os.read(master, 65536):
                    said += part
            except OSError:  # how a terminal ends
                pass
            os.close(master)
            assert child.wait() == 0
            if slow:
                lines = said.decode().split('\r')
                assert lines[0] == '' and lines[-1] == '\033[K', said
                assert all(re.fullmatch(r'tapedeck: large\.json: (reading|arranging|writing), \d+ %\033\[K', line)
                           for line in lines[1:-1]) and len(lines) > 5, said
    clear()
    child = start('info', large, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.communicate()[1] == '' and child.returncode == 0

    # The other commands import, too.
    clear()
    child = start('info', large, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stop_while_it_writes(child)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGCONT)
    assert child.communicate() == ('', CANCELLED) and child.returncode == 130, child.returncode
    assert kept(scratch) == alone, kept(scratch)
