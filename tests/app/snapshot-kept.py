"""What a memory snapshot says beside blocks and changes is on its tape, and in the snapshot that is written
of the tape: free ends of segments, their streams and kinds, the program's metadata and annotations.

    snapshot-kept.py TAPEDECK

SPDX-License-Identifier: MIT
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile

tapedeck = sys.argv[1]
M = 1 << 20
BASE = 0x7f0000000000
NAME = 'forward pass=1 µ'


def run(*args):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == 0, (args, result.stdout, result.stderr)
    return result.stdout


def entry(action, at, size, time, **more):
    frames = [{'filename': '/src/train.py', 'line': time, 'name': 'step'}]
    return dict(action=action, addr=at, size=size, stream=0, time_us=time, frames=frames, **more)


def segment(device, at, total, stream, kind, blocks):
    return {'device': device, 'address': at, 'total_size': total, 'stream': stream, 'segment_type': kind,
            'segment_pool_id': (0, 0), 'blocks': [
                {'address': a, 'size': size, 'requested_size': size if state == 'active_allocated' else 0,
                 'state': state, 'frames': []} for a, size, state in blocks]}


def snapshot():
    many = [segment(0, BASE + (64 + 3 * k) * M, 2 * M, 0, 'small', [(BASE + (64 + 3 * k) * M, 2 * M, 'inactive')])
            for k in range(600)]  # more than one text of the tape has
    return {
        'segments': [segment(0, BASE, 20 * M, 3, 'large', [(BASE, 2 * M, 'active_allocated'),
                                                           (BASE + 2 * M, 18 * M, 'inactive')]),
                     segment(0, BASE + 32 * M, 2 * M, 0, 'small', [(BASE + 32 * M, 2 * M, 'inactive')]),
                     segment(1, BASE, 4 * M, 0, 'large', [(BASE, M, 'active_allocated'),
                                                          (BASE + M, 3 * M, 'inactive')])] + many,
        'device_traces': [
            [entry('alloc', BASE, 2 * M, 100, user_metadata='epoch 2 stage=7'),
             entry('alloc', BASE + 36 * M, M, 120), entry('free_requested', BASE + 36 * M, M, 140),
             entry('free_completed', BASE + 36 * M, M, 140, user_metadata='end')],
            [entry('alloc', BASE, M, 130)]],
        'external_annotations': [
            {'name': NAME, 'stage': 'END', 'device': 0, 'time_us': 500},
            {'name': NAME, 'stage': 'START', 'device': 0, 'time_us': 110},
            {'name': 'nowhere', 'stage': 'START', 'device': 7, 'time_us': 110}, {'name': 'no time'}],
        'allocator_settings': {}}


def shape(segments, device):
    """Of a device: where segments are, and what is free in them."""
    return sorted((s['address'], s['total_size'], s['stream'], s['segment_type'],
                   tuple((b['address'], b['size']) for b in s['blocks'] if b['state'] == 'inactive'))
                  for s in segments if s['device'] == device)


def check_sources(folder):
    """Of the files that stacks name those are stored which the program can have run."""
    path, tape = os.path.join(folder, 'c.pickle'), os.path.join(folder, 'c.tdtape')
    old, new, gone, text = (os.path.join(folder, name) for name in ('old.py', 'new.py', 'gone.py', 'notes.txt'))
    given = snapshot()
    given['device_traces'][0][0]['frames'] = [{'filename': f, 'line': 2, 'name': 'step'} for f in (old, new, gone, text)]
    for name in (old, new, text):
        with open(name, 'w') as file:
            file.write('# %s\nstep()\n' % os.path.basename(name))
    with open(path, 'wb') as file:
        pickle.dump(given, file)
    now = os.stat(path).st_mtime
    os.utime(old, (now - 100, now - 100))
    os.utime(text, (now - 100, now - 100))
    os.utime(new, (now + 100, now + 100))
    run('import', path, '-o', tape)
    stored = [line for line in run('cat', tape).splitlines() if line.startswith('source ')]
    assert stored == ['source "%s" %d bytes' % (old, os.path.getsize(old))], stored


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ['XDG_CACHE_HOME'] = folder
        path, tape, out = (os.path.join(folder, name) for name in ('a.pickle', 'a.tdtape', 'b.pickle'))
        given = snapshot()
        with open(path, 'wb') as file:
            pickle.dump(given, file)
        run('import', path, '-o', tape)
        run('check', tape)
        text = run('cat', tape)
        lines = [line.strip() for line in text.splitlines()]

        print('1..4')
        assert any('forward alloc /src/train.py:100 [user_metadata=epoch 2 stage=7]' in line for line in lines), text
        assert any('forward free /src/train.py:140 [user_metadata=end]' in line for line in lines), text
        print("ok 1 - what the program said to the allocator stands at its entries")

        order = [line.split('[')[0].split(' forward ')[1].split(' ')[0] for line in lines if ' forward ' in line]
        assert order == ['alloc', 'annotation', 'alloc', 'alloc', 'free', 'annotation'], order
        assert sum('[device=0 stage=START name=%s]' % NAME in line for line in lines) == 1, text
        print("ok 2 - annotations are events, each at its time")

        assert any('2 annotations have no place in the trace' in line for line in lines), text
        print("ok 3 - annotations without a time or a trace are counted")

        for device in (0, 1):
            run('export', tape, '--format', 'torch-snapshot', '--device', str(device + 1), '-o', out)
            with open(out, 'rb') as file:
                back = pickle.load(file)
            mine, theirs = shape(given['segments'], device), shape(back['segments'], device + 1)
            # what was freed before the end lies in no segment any more, and has one of its own
            extra = [s for s in theirs if s not in mine]
            assert all(s in theirs for s in mine), (device, [s for s in mine if s not in theirs])
            assert [s[0] for s in extra] == ([BASE + 36 * M] if device == 0 else []), extra
            said = [e.get('user_metadata') for e in back['device_traces'][device + 1]]
            assert said == (['epoch 2 stage=7', None, 'end', 'end'] if device == 0 else [None]), said
            assert all(a['name'] == NAME for a in back['external_annotations']), back['external_annotations']
            notes = [(a['stage'], a['device'], a['time_us']) for a in back['external_annotations']]
            assert notes == ([('START', 1, 10), ('END', 1, 400)] if device == 0 else []), notes
        assert json.loads(run('info', '--json', out))['import'] == 'torch-snapshot'
        check_sources(folder)
        print("ok 4 - free ends of segments, metadata and annotations are in the snapshot that is written again")


main()
