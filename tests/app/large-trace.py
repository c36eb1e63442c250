"""`tapedeck import` of a trace of 10,000,000 events: read within the memory that its slices need, cancelled on the
way, and refused in a line where there is not so much memory or the file is cut in half.

    large-trace.py TAPEDECK

SPDX-License-Identifier: MIT
"""
import gzip
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

tapedeck = sys.argv[1]
N, A_STEP, A_BLOCK = 10_000_000, 100_000, 50_000
BYTES_AN_EVENT = 160  # of memory; the file has 115
A_PIECE = 0.5  # seconds of the processor from the signal until it has ended
n_claims = 0


def claim(text):
    global n_claims
    n_claims += 1
    print(f'ok {n_claims} - {text}', flush=True)


def event(i):
    """Of a step of the profiler: operations, with others in them that launch kernels."""
    at = 4 * i
    if i % A_STEP == 0:
        return ('{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,"ts":%d,"dur":%d}'
                % (i // A_STEP, at, 4 * A_STEP - 10))
    if i % 4 == 0:
        return '{"ph":"X","cat":"cpu_op","name":"aten::outer%d","pid":1,"tid":1,"ts":%d.5,"dur":14}' % (i % 50, at)
    if i % 4 == 1:
        return '{"ph":"X","cat":"cpu_op","name":"aten::inner%d","pid":1,"tid":1,"ts":%d,"dur":8}' % (i % 30, at)
    if i % 4 == 2:
        return ('{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%d,"dur":2,'
                '"args":{"correlation":%d}}' % (at - 2, i))
    return ('{"ph":"X","cat":"kernel","name":"kernel%d","pid":0,"tid":7,"ts":%d,"dur":3,'
            '"args":{"device":0,"stream":7,"correlation":%d}}' % (i % 30, at, i - 1))


def write(path):
    with gzip.open(path, 'wt', compresslevel=1, encoding='ascii') as file:
        file.write('{"traceEvents": [\n')
        for first in range(0, N, A_BLOCK):
            file.write((',\n' if first else '') + ',\n'.join(map(event, range(first, first + A_BLOCK))))
        file.write('\n]}\n')


def start(*args, data=None):
    def limit():
        if data is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (data, data))

    return subprocess.Popen([tapedeck, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, preexec_fn=limit)


def processor(pid):
    """Seconds that it has had so far."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


with tempfile.TemporaryDirectory() as scratch:
    trace, tape = os.path.join(scratch, 'large.json.gz'), os.path.join(scratch, 'large.tdtape')
    write(trace)

    child = start('import', trace, '--progress', '-o', tape, data=N * BYTES_AN_EVENT)
    out, error = child.communicate()
    assert child.returncode == 0 and error == '', (child.returncode, error)
    *lines, summary = out.splitlines()
    assert f' of {N} slices, in ' in summary and ' (100 of the profiler)' in summary, summary
    said = [line.split() for line in lines]
    for stage in 'reading', 'arranging', 'writing':
        parts = [int(part) for part, _, _, of in said if of == stage]
        assert len(parts) > 10 and parts == sorted(parts), (stage, parts)
    whole = subprocess.run([tapedeck, 'check', tape], capture_output=True, text=True)
    assert whole.returncode == 0 and 'whole' in whole.stdout, whole
    claim(f'{N} events are read in {N * BYTES_AN_EVENT} bytes of memory, with progress')
    os.remove(tape)

    # Seconds into the stage: while the slices are sorted, then what each does for itself.
    for stage, delay in ('reading', 0), ('arranging', 0), ('arranging', 0.5), ('arranging', 1), ('arranging', 2), ('writing', 0):
        child = start('import', trace, '--progress', '-o', tape)
        while not child.stdout.readline().endswith(f' {stage}\n'):
            pass
        before, most = processor(child.pid) + delay, 0
        while processor(child.pid) < before:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        before = processor(child.pid)
        while child.poll() is None:
            spent = processor(child.pid) - before if os.path.exists(f'/proc/{child.pid}/stat') else 0
            most = max(most, spent)
            time.sleep(0.02)
        assert most < A_PIECE, f'{most} s after it was cancelled {delay} s into {stage}'
        print(f'# {most:.2f} s after it was cancelled {delay} s into {stage}')
        assert child.returncode == 128 + signal.SIGINT, child.returncode
        assert 'cancelled; nothing was written' in child.stderr.read()
        assert os.listdir(scratch) == ['large.json.gz'], os.listdir(scratch)
        child.stdout.close()
        child.stderr.close()
    claim('it is cancelled while it reads, arranges and writes, and leaves nothing')

    child = start('import', trace, '-o', tape, data=N * BYTES_AN_EVENT // 4)
    out, error = child.communicate()
    assert child.returncode == 2 and out == '', (child.returncode, out)
    assert error == f'tapedeck: {trace}: no memory\n', error
    assert os.listdir(scratch) == ['large.json.gz'], os.listdir(scratch)
    claim('where there is not so much memory a line says so')

    os.truncate(trace, os.path.getsize(trace) // 2)
    child = start('import', trace, '-o', tape)
    out, error = child.communicate()
    assert child.returncode == 2 and out == '' and error.count('\n') == 1, (child.returncode, error)
    print('#', error.strip())
    assert 'cut off' in error, error
    assert os.listdir(scratch) == ['large.json.gz'], os.listdir(scratch)
    claim('of half of it, a line says that it is cut off')
print(f'1..{n_claims}')
