"""`tapedeck export`: what it writes is a pickle without code, of the keys that PyTorch's viewer
reads, and its blocks are those that the tape has.

SPDX-License-Identifier: MIT
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile

tapedeck, model = sys.argv[1], sys.argv[2]


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise ValueError(f'{module}.{name} in the pickle')

    def persistent_load(self, pid):
        raise ValueError(f'{pid} in the pickle')


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stderr)
    return result


def check_frames(frames):
    assert frames, 'a stack is expected'
    for frame in frames:
        assert type(frame['filename']) is str and type(frame['name']) is str
        assert type(frame['line']) is int


def read(path):
    with open(path, 'rb') as file:
        snapshot = Plain(file).load()
        assert not file.read(), 'bytes after the pickle'
    assert {'segments', 'device_traces'} <= snapshot.keys()
    return snapshot


def live_at_end(snapshot):
    """Bytes by the segments: their blocks fill them."""
    total = 0
    for segment in snapshot['segments']:
        at = segment['address']
        active = 0
        for block in segment['blocks']:
            assert block['address'] == at, (block, at)
            at += block['size']
            assert block['state'] in ('active_allocated', 'inactive')
            if block['state'] == 'active_allocated':
                assert 0 < block['requested_size'] <= block['size']
                check_frames(block['frames'])
                active += block['size']
        assert at == segment['address'] + segment['total_size']
        assert active == segment['allocated_size'] == segment['active_size']
        total += active
    return total


def net(trace):
    sign = {'alloc': 1, 'free_completed': -1, 'free_requested': 0, 'oom': 0}
    return sum(sign[entry['action']] * entry['size'] for entry in trace)


def check_trace(snapshot, end_bytes):
    """What is alive at the end is what was at the start, and the trace."""
    trace = snapshot['device_traces'][-1]
    alive, freed_before = {}, 0
    for entry in trace:
        check_frames(entry['frames'])
        # The viewer goes back in time, and wants a segment around each block.
        assert entry['action'] == 'oom' or any(
            s['address'] <= entry['addr']
            and entry['addr'] + entry['size'] <= s['address'] + s['total_size']
            for s in snapshot['segments']), entry
        if entry['action'] == 'alloc':
            assert entry['addr'] not in alive, entry
            alive[entry['addr']] = entry['size']
        elif entry['action'] == 'free_completed':
            size = alive.pop(entry['addr'], None)
            assert size in (None, entry['size'])
            freed_before += entry['size'] if size is None else 0
    blocks = {b['address']: b['size'] for s in snapshot['segments'] for b in s['blocks']
              if b['state'] == 'active_allocated'}
    for address, size in alive.items():
        assert blocks[address] == size
    assert sum(blocks.values()) == end_bytes
    return trace, freed_before


with tempfile.TemporaryDirectory() as folder:
    tape, out = os.path.join(folder, 'a.tdtape'), os.path.join(folder, 'a.pickle')
    run('run', '--quiet', '--mem-limit', '12000000', '-o', tape, model, '8000', 'keep')
    report = json.loads(run('info', '--oom', '--json', tape).stdout)['out_of_memory'][0]

    # The iteration without memory: up to the OOM its bytes are those of the report.
    run('export', tape, '--format', 'torch-snapshot', '-o', out)
    snapshot = read(out)
    trace, freed_before = check_trace(snapshot, live_at_end(snapshot))
    actions = [entry['action'] for entry in trace]
    assert actions.count('oom') == 1
    at = actions.index('oom')
    assert trace[at]['size'] == report['asked_bytes']
    assert trace[at]['device_free'] == report['limit_bytes'] - report['live_bytes']
    assert trace[at]['frames'][0]['name'] == 'forward relu'
    assert trace[at]['frames'][0]['filename'].endswith('grows.c')
    before, after = net(trace[:at]), net(trace[at + 1:])
    assert live_at_end(snapshot) == report['live_bytes'] + after
    assert before > 0 > after

    # A whole one has the trace of forward, backward and update, and no OOM.
    run('export', tape, '--format', 'torch-snapshot', '--iteration', '3', '-o', out)
    snapshot = read(out)
    trace, _ = check_trace(snapshot, live_at_end(snapshot))
    names = {entry['frames'][0]['name'] for entry in trace}
    assert {'forward linear', 'forward relu'} <= names, names
    assert any(name.startswith('backward ') for name in names)
    assert not any(entry['action'] == 'oom' for entry in trace)

    # A long list comes in parts: the trace of many operations is whole.
    long, many = os.path.join(folder, 'b.tdtape'), os.path.join(folder, 'b.c')
    with open(many, 'w') as file:
        file.write('#include <tapedeck.h>\nint main (int argc, char **argv) {'
                   ' td_init (&argc, &argv); TD_ITERATION (0) { TdVar *x = td_ones (TD_F32,'
                   ' TD_SHAPE (8)); for (int i = 0; i < 2500; i++) x = td_neg (x); }'
                   ' return td_finish (); }\n')
    run('run', '--quiet', '-o', long, many)
    run('export', long, '--format', 'torch-snapshot', '-o', out)
    snapshot = read(out)
    trace, _ = check_trace(snapshot, 0)
    assert [entry['action'] for entry in trace].count('alloc') == 2501
    assert len({entry['time_us'] for entry in trace}) > 1
    with open(out, 'rb') as file:
        assert b'e(}(' in file.read()

    # A device that is not there is an error, which replaces nothing; - is standard output.
    with open(out, 'rb') as file:
        before = file.read()
    text = run('export', long, '--format', 'torch-snapshot', '--device', '2', '-o', out, status=2).stderr
    assert 'has no device 2' in text, text
    with open(out, 'rb') as file:
        assert file.read() == before
    printed = subprocess.run([os.path.abspath(sys.argv[1]), 'export', long, '--format', 'torch-snapshot', '-o', '-'],
                             cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    assert printed == before and not os.path.exists(os.path.join(folder, '-'))

    for args in (['export', tape], ['export', tape, '--format', 'x', '-o', out],
                 ['export', tape, '--format', 'torch-snapshot'],
                 ['export', tape, '--format', 'torch-snapshot', '-o', out, '--iteration', '-1'],
                 ['export', tape, '--format', 'torch-snapshot', '-o', out, '--iteration', '99'],
                 ['export', model, '--format', 'torch-snapshot', '-o', out]):
        text = run(*args, status=2).stderr
        assert text.startswith('tapedeck: '), text
