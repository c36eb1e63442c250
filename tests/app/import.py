"""`tapedeck import`: the tape of a snapshot has the blocks, sizes and peak that a second reading of
the file, by Python's own pickle and other code, comes to; and what was exported comes back.

    import.py TAPEDECK MODEL FOLDER [VIZ]     FOLDER has make.py, large.py and the small snapshots

SPDX-License-Identifier: MIT
"""
import collections
import json
import os
import pickle
import subprocess
import sys
import tempfile

tapedeck, model, folder = sys.argv[1:4]
have_viz = len(sys.argv) > 4 and sys.argv[4] == 'viz'


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def expected(snapshot):
    """Changes of memory in order, bytes at the start, at the peak and at the end, by the rules of
    td-tape-import.h: what is there at the end has its block's size, all else the trace's."""
    at_end = {(s['device'], b['address']): b['size']
              for s in snapshot['segments'] for b in s['blocks'] if b['state'] != 'inactive'}
    entries = [(e.get('time_us', 0), d, e) for d, trace in enumerate(snapshot['device_traces'])
               for e in trace if e['action'] in ('alloc', 'free_completed')]
    entries.sort(key=lambda e: e[0])  # stable: a device's order is its own
    start, live, changes = {}, {}, []
    last_alloc = {}
    for i, (_, d, e) in enumerate(entries):
        key = d, e['addr']
        if e['action'] == 'alloc':
            live[key] = last_alloc[key] = i
        elif key in live:
            del live[key]
        elif key not in last_alloc:
            start[key] = e['size']
            last_alloc[key] = -1
    for key, size in at_end.items():
        if key not in last_alloc:
            start[key] = size
    size_of = dict(start)
    now = peak = sum(start.values())
    for i, (_, d, e) in enumerate(entries):
        key = d, e['addr']
        if e['action'] == 'alloc':
            size_of[key] = at_end.get(key, e['size']) if live.get(key) == i else e['size']
            now += size_of[key]
            changes.append(('alloc', e['addr'], size_of[key]))
        else:
            size = size_of.pop(key)
            now -= size
            changes.append(('free', e['addr'], size))
        peak = max(peak, now)
    assert now == sum(at_end.values()), 'the snapshot itself does not add up'
    return sum(start.values()), changes, peak, at_end


def stacks(snapshot):
    """Bytes at the peak and at the end, and bytes times us over the trace, of each stack that allocated,
    outermost first; of several devices together, in the order of time."""
    def key(frames):
        return tuple((f['name'], f['line'], f['filename']) for f in reversed(frames)
                     if f['line'] or f['filename'] not in ('link', 'category'))

    at_end = {(s['device'], b['address']): b for s in snapshot['segments'] for b in s['blocks']
              if b['state'] != 'inactive'}
    all_entries = [(e.get('time_us', 0), d, e) for d, trace in enumerate(snapshot['device_traces'])
                   for e in trace]
    all_entries.sort(key=lambda e: e[0])
    entries = [e for e in all_entries if e[2]['action'] in ('alloc', 'free_completed')]
    first, last = all_entries[0][0], all_entries[-1][0]
    # A request that completes at once is no event of its own.
    if all_entries[0][2]['action'] == 'free_requested':
        first = all_entries[1][0]
    seen, live = set(), {}
    for time, d, e in entries:
        where = d, e['addr']
        if e['action'] == 'free_completed' and where not in seen:
            live[where] = (e['size'], (), first)
        seen.add(where)
    for where, b in at_end.items():
        if where not in seen:
            live[where] = (b['size'], key(b['frames']), first)
    last_alloc = {(d, e['addr']): i for i, (_, d, e) in enumerate(entries) if e['action'] == 'alloc'}
    now = most = sum(size for size, _, _ in live.values())
    peak, held = list(live.values()), collections.Counter()
    for i, (time, d, e) in enumerate(entries):
        where = d, e['addr']
        if e['action'] == 'alloc':
            stays = where in at_end and last_alloc[where] == i
            live[where] = (at_end[where]['size'] if stays else e['size'], key(e['frames']), time)
            now += live[where][0]
        else:
            size, stack, since = live.pop(where)
            held[stack] += size * (time - since)
            now -= size
        if now > most:
            most, peak = now, list(live.values())
    for size, stack, since in live.values():
        held[stack] += size * (last - since)
    sums = [collections.Counter(), collections.Counter()]
    for sum_, blocks in zip(sums, (peak, live.values())):
        for size, stack, _ in blocks:
            sum_[stack] += size
    return sums[0], sums[1], held


def check_flame(path, snapshot):
    """Boxes are what the stacks of the pickle add up to, and so are lines of folded stacks."""
    peak, end, held = stacks(snapshot)

    def name(frame):
        function, line, file = frame
        return (function or file) if line == 0 or file == '??' else f'{function} ({os.path.basename(file)}:{line})'

    for by, sums, whole in (('peak', peak, 'the peak'), ('end', end, 'the end')):
        flame = json.loads(run('show', path, '--view', 'flame', '--by', by, '--format', 'json').stdout)
        nodes, named = flame['nodes'], collections.Counter()
        assert nodes[0]['bytes'] == sum(sums.values()), (by, nodes[0]['bytes'], sum(sums.values()))
        assert nodes[0]['byte_ms'] == sum(held.values()) // 1000 or abs(
            nodes[0]['byte_ms'] - sum(held.values()) / 1000) <= len(held) + 1
        inside = collections.defaultdict(list)
        for node in nodes:
            inside[node['parent']].append(node)
        for i, node in enumerate(nodes):
            inner = inside[i]
            assert not inner or node['bytes'] == sum(n['bytes'] for n in inner), node
            assert not inner or node['blocks'] == sum(n['blocks'] for n in inner), node
        for stack, size in sums.items():
            named[';'.join([whole] + [name(f).replace(';', ',') for f in stack]
                           if stack else [whole, 'stack not known'])] += size
        folded = collections.Counter()
        for line in run('show', path, '--view', 'flame', '--by', by, '--format',
                        'folded').stdout.splitlines():
            text, size = line.rsplit(' ', 1)
            folded[text[:-len(';itself')] if text.endswith(';itself') else text] += int(size)
        assert folded == named, (by, folded - named, named - folded)
    assert '·s over the whole trace' in run('show', path, '--view', 'flame', '--by',
                                            'bytes-time').stdout
    assert run('show', path, '--view', 'flame', '--format', 'svg').stdout.startswith('<?xml')
    error = run('show', path, '--view', 'flame', '--by', 'time', status=2).stderr
    assert 'peak, end or bytes-time' in error, error


def check(path, tape):
    with open(path, 'rb') as file:
        snapshot = pickle.load(file)
    start, changes, peak, at_end = expected(snapshot)
    run('import', path, '-f', '-o', tape)
    assert 'whole' in run('check', tape).stdout
    records = [json.loads(line) for line in run('cat', '--json', tape).stdout.splitlines()]
    memory = [(r['kind'], int(r['address'], 16), r['bytes'])
              for r in records if r['record'] == 'memory']
    assert memory == changes, [x for x in zip(memory, changes) if x[0] != x[1]][:3]
    iteration, = [r for r in records if r['record'] == 'iteration']
    assert iteration['peak_bytes'] == peak, (iteration['peak_bytes'], peak)
    info = json.loads(run('info', '--json', path).stdout)  # the file itself, made into a tape
    assert info['import'] == 'torch-snapshot' and info['ops_total'] == 0
    assert sum(d['live_bytes'] for d in info['devices']) == sum(
        s['allocated_size'] for s in snapshot['segments'])
    assert sum(d['reserved_bytes'] for d in info['devices']) == sum(
        s['total_size'] for s in snapshot['segments'])
    if have_viz:
        blocks = json.loads(run('show', path, '--view', 'blocks', '--format', 'json').stdout)
        assert {(b['address'], b['bytes']) for b in blocks['blocks']} == {
            (address, size) for (_, address), size in at_end.items()}
        if any(e['frames'] for trace in snapshot['device_traces'] for e in trace):
            check_flame(tape, snapshot)
    return snapshot, at_end


with tempfile.TemporaryDirectory() as scratch:
    tape, out = os.path.join(scratch, 'a.tdtape'), os.path.join(scratch, 'a.pickle')
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')

    for name in ('small-2', 'small-3', 'small-4', 'small-5'):
        check(os.path.join(folder, name + '.pickle'), tape)
    long = os.path.join(scratch, 'long.pickle')
    for protocol in '2', '4':
        subprocess.run([sys.executable, os.path.join(folder, 'make.py'), long, '5000', protocol],
                       check=True)
        check(long, tape)

    # As PyTorch shares frames and stacks; and long enough for lists that come in parts.
    large = os.path.join(scratch, 'large.pickle')
    subprocess.run([sys.executable, os.path.join(folder, 'large.py'), '--check'], check=True)
    subprocess.run([sys.executable, os.path.join(folder, 'large.py'), large, '5000'], check=True)
    check(large, tape)

    # What was recorded here, exported and imported again.
    source = os.path.join(scratch, 'b.tdtape')
    run('run', '--quiet', '-o', source, model, '8000', 'keep')
    for iteration in '1', '5':
        run('export', source, '--format', 'torch-snapshot', '--iteration', iteration, '-o', out)
        snapshot, at_end = check(out, tape)
        assert len(at_end) > 3
        if have_viz:
            mine, theirs = [{(b['address'], b['bytes'], b['category']) for b in json.loads(run(
                'show', file, '--view', 'blocks', '--format', 'json', *extra).stdout)['blocks']}
                for file, extra in ((source, ['--iteration', iteration]), (tape, []))]
            assert mine == theirs, mine ^ theirs

    # Sites of what was allocated, by the name and line that the export gave.
    records = [json.loads(line) for line in run('cat', '--json', tape).stdout.splitlines()]
    sites = {r['site'] for r in records if r['record'] == 'event' and r['op'] == 'alloc'}
    frames = {f'{f["filename"]}:{f["line"]}' for e in snapshot['device_traces'][0]
              if e['action'] == 'alloc' for f in e['frames'][:1] if f['filename'] != '??'}
    assert frames and frames == sites - {''}, frames ^ sites

    # What a snapshot does not have is one line, whichever view asks for it.
    for args in ([['show', long, '--view', view] for view in
                  ('graph', 'backward', 'schedule', 'timeline', 'holders', 'growth', 'retained',
                   'gradients', 'curves', 'tensor')] + [['leaks', long]] if have_viz else []):
        error = run(*args, status=2).stderr
        assert 'a memory snapshot' in error and error.count('\n') == 1, error
    if have_viz:
        curve = json.loads(run('show', long, '--view', 'memory', '--format', 'json').stdout)
        assert len(curve['events']) > 3000 and max(
            e['total'] for e in curve['events']) == curve['peak_bytes'], curve.keys()

    # A file that was opened is made into a tape once, and again when it has changed.
    cached = os.path.join(scratch, 'cache', 'tapedeck', 'import')
    n = len(os.listdir(cached))
    run('info', out)
    assert len(os.listdir(cached)) == n
    os.utime(out, (1, 1))
    run('info', out)
    assert len(os.listdir(cached)) == n + 1

    harmful = os.path.join(folder, 'harmful.pickle')
    for args in (['import'], ['import', out], ['import', '-o', tape], ['import', out, '-o', tape],
                 ['import', harmful, '-f', '-o', out + '.tdtape'], ['info', harmful],
                 ['import', model, '-f', '-o', out + '.tdtape'],
                 ['import', os.path.join(scratch, 'none'), '-o', out + '.tdtape']):
        result = run(*args, status=2)
        assert result.stderr.startswith('tapedeck: ') and 'this was run' not in result.stdout
        assert not os.path.exists(out + '.tdtape')
