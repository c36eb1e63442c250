"""`tapedeck export --format chrome` and `--format perfetto`: slices, layers around them, memory, gradients and
reports are those of `tapedeck cat`, and both formats say the same.

Perfetto's protobuf is read here by its wire format and the field numbers of the public schema; where its own
Python classes can be imported (pip install perfetto), by these as well.

    export-trace.py TAPEDECK MODEL PRODUCER

SPDX-License-Identifier: MIT
"""
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

tapedeck, model, producer = sys.argv[1:4]
n_claims = 0


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True)
    assert result.returncode == status, (args, result.returncode, result.stderr)
    return result.stdout


def claim(text):
    global n_claims
    n_claims += 1
    print(f'ok {n_claims} - {text}', flush=True)


# ---- chrome: rows of slices, and counters

def read_chrome(data):
    """Slices as (row, start, end, name, arguments), in order of beginning, and counters as (name, time, value)."""
    slices, counters, rows, stacks = [], [], {}, collections.defaultdict(list)
    for e in json.loads(data)['traceEvents']:
        at = round(float(e.get('ts', 0)) * 1000)
        if e['ph'] == 'M' and e['name'] == 'thread_name':
            rows[e['tid']] = e['args']['name']
        elif e['ph'] == 'X':
            slices.append([e['tid'], at, at + round(float(e['dur']) * 1000), e['name'], e['args']])
        elif e['ph'] == 'B':
            slices.append([e['tid'], at, None, e['name'], e['args']])
            stacks[e['tid']].append(slices[-1])
        elif e['ph'] == 'E':
            stacks[e['tid']].pop()[2] = at
        elif e['ph'] == 'C':
            (value,) = e['args'].values()
            counters.append((e['name'], at, float(value)))
    assert not any(stacks.values()), 'a slice that does not end'
    return [(rows[s[0]], *s[1:]) for s in slices], counters


# ---- perfetto: https://protobuf.dev/programming-guides/encoding

def fields(data):
    at = 0

    def varint():
        nonlocal at
        x = shift = 0
        while True:
            byte = data[at]
            at += 1
            x |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return x

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, data[at:at + 8]
            at += 8
        else:
            assert key & 7 == 2, key
            n = varint()
            assert at + n <= len(data), 'a message that does not end'
            yield key >> 3, data[at:at + n]
            at += n


def message(data):
    out = collections.defaultdict(list)
    for field, value in fields(data):
        out[field].append(value)
    return out


def read_perfetto(data):
    slices, counters, rows, stacks = [], [], {}, collections.defaultdict(list)
    for field, packet in fields(data):
        assert field == 1  # Trace.packet
        packet = message(packet)
        assert packet[10] == [1]  # trusted_packet_sequence_id
        for track in map(message, packet[60]):  # track_descriptor
            if track[4]:  # thread
                rows[track[1][0]] = message(track[4][0])[5][0].decode()
            elif track[8]:  # counter
                rows[track[1][0]] = track[2][0].decode()
        for event in map(message, packet[11]):  # track_event
            at, row, kind = packet[8][0], event[11][0], event[9][0]
            assert row in rows, 'a row that is used before it is described'
            if kind == 1:  # TYPE_SLICE_BEGIN
                said = {}
                for note in map(message, event[4]):  # debug_annotations
                    said[note[10][0].decode()] = note[6][0].decode() if note[6] else note[3][0]
                slices.append([rows[row], at, None, event[23][0].decode(), said])
                stacks[row].append(slices[-1])
            elif kind == 2:  # TYPE_SLICE_END
                stacks[row].pop()[2] = at
            else:
                assert kind == 4, kind  # TYPE_COUNTER
                value = event[30][0] if event[30] else struct.unpack('<d', event[44][0])[0]
                counters.append((rows[row], at, float(value)))
    assert not any(stacks.values()), 'a slice that does not end'
    return [tuple(s) for s in slices], counters


# ---- what both have to say

def check_nested(slices):
    """Of two slices of one row the one lies in the other, or they do not meet."""
    open_to = collections.defaultdict(list)
    for row, start, end, name, _ in sorted(slices, key=lambda s: (s[0], s[1], -s[2])):
        stack = open_to[row]
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1], (row, name, start, end, stack[-1])
        stack.append(end)


def layers_around(slices, op):
    row, start, end, _, said = op
    return [s[3] for s in slices if s[0] == row and 'event' not in s[4] and s[1] <= start and end <= s[2]
            and s[4]['iteration'] == said['iteration']]


def check(tape):
    records = [json.loads(line) for line in run('cat', '--json', tape).splitlines()]
    iterations = {r['number']: r for r in records if r['record'] == 'iteration'}
    events = [r for r in records if r['record'] == 'event']
    slices, counters = read_chrome(run('export', tape, '--format', 'chrome', '-o', '-'))
    both = read_perfetto(run('export', tape, '--format', 'perfetto', '-o', '-'))
    assert sorted(map(str, slices)) == sorted(map(str, both[0])), 'slices differ'
    assert [c[:2] for c in counters] == [c[:2] for c in both[1]]
    assert all(abs(a[2] - b[2]) <= 1e-8 * abs(b[2]) for a, b in zip(counters, both[1]))
    check_nested(slices)

    ops = [s for s in slices if 'event' in s[4]]
    assert len(ops) == len(events)
    for e, s in zip(sorted(events, key=lambda e: (e['iteration'], e['event'])),
                    sorted(ops, key=lambda s: (s[4]['iteration'], s[4]['event']))):
        start = iterations[e['iteration']]['start_ns'] + e['start_ns']
        assert (s[3], s[1], s[2] - s[1]) == (e['op'], start, e['ns']), (s, e)
        around = layers_around(slices, s)
        assert around[0] == e['phase'], (around, e)
        twin = e if e['twin'] < 0 else next(t for t in events if t['iteration'] == e['iteration']
                                            and t['event'] == e['twin'])
        assert '/'.join(around[1:]).endswith(twin['link']), (around, twin['link'])
    claim(f'{len(ops)} operations are slices with their times, each in its phase and its layers, in both formats')

    # Memory after each iteration, by its records.
    for number, iteration in iterations.items():
        memory = [r for r in records if r['record'] == 'memory' and r['iteration'] == number]
        last = {}
        first = collections.defaultdict(float)
        end = iteration['start_ns'] + iteration['ns']
        for name, at, value in counters:
            if name.startswith('memory ') and at <= iteration['start_ns']:
                first[name] = value
            if name.startswith('memory ') and at <= end:
                last[name] = value
        change = sum(r['bytes'] if r['kind'] == 'alloc' else -r['bytes'] for r in memory
                     if r['kind'] in ('alloc', 'free'))
        assert sum(last.values()) - sum(first.values()) == change, (number, last, first, change)
        now, peak = dict(first), sum(first.values())
        moments = collections.defaultdict(list)
        for name, at, value in counters:
            if name.startswith('memory ') and iteration['start_ns'] < at <= end:
                moments[at].append((name, value))
        for at in sorted(moments):
            for name, value in moments[at]:
                now[name] = value
            peak = max(peak, sum(now.values()))
        assert peak <= iteration['peak_bytes'], (peak, iteration['peak_bytes'])
    assert any(name.startswith('memory ') for name, _, _ in counters)
    claim(f'memory counters of {len(iterations)} iterations change by what the records say')

    reports = [r['value'] for r in records if r['record'] == 'report' and r['key'] == 'loss']
    assert reports and all(abs(a - b) <= 1e-6 * abs(b) for a, b in zip(
        [v for n, _, v in counters if n == 'loss'], reports, strict=True))
    claim(f'{len(reports)} reports are a counter')
    return records, counters


with tempfile.TemporaryDirectory() as scratch:
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')
    tape = os.path.join(scratch, 'a.tdtape')
    run('run', '--quiet', '--level', 'stats', '-o', tape, model, '5')
    check(tape)
    told = os.path.join(scratch, 'b.tdtape')
    subprocess.run([producer, told], check=True, stdout=subprocess.DEVNULL)
    records, counters = check(told)
    grads = {(r['iteration'], v['var']) for r in records if r['record'] == 'event' and r['phase'] == 'backward'
             for v in r['out']}
    norms = [r['l2'] for r in records if r['record'] == 'stats' and (r['iteration'], r['var']) in grads]
    mine = [v for n, _, v in counters if n == 'gradient line/a']
    assert len(mine) == len(norms) > 0 and all(abs(a - b) <= 1e-6 * b for a, b in zip(mine, norms)), (mine, norms)
    claim(f'{len(mine)} norms of a gradient are a counter')

    # One iteration; and what cannot be.
    slices, _ = read_chrome(run('export', told, '--format', 'chrome', '--iteration', '3', '-o', '-'))
    assert {s[4]['iteration'] for s in slices} == {3}
    for wrong in (['--format', 'chrome', '--iteration', '9999'], ['--format', 'perfetto', '--device', '0'],
                  ['--format', 'chromium']):
        run('export', told, *wrong, '-o', '-', status=2)
    claim('one iteration is exported alone, and what is not there is refused')

    # What was exported comes back.
    path = os.path.join(scratch, 'c.json')
    run('export', told, '--format', 'chrome', '-o', path)
    again = [json.loads(line) for line in run('cat', '--json', path).splitlines()]
    names = collections.Counter(r['op'] for r in again if r['record'] == 'event')
    for op in {r['op'] for r in records if r['record'] == 'event'}:
        assert names[op] == sum(r['record'] == 'event' and r['op'] == op for r in records), op
    claim('the JSON is a trace that tapedeck reads')

    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
    except ImportError:
        claim("Perfetto's own classes read it # SKIP no Python package perfetto")
    else:
        data = run('export', told, '--format', 'perfetto', '-o', '-')
        trace = schema.Trace()
        trace.ParseFromString(data)
        kinds = collections.Counter(p.track_event.type for p in trace.packet if p.HasField('track_event'))
        T = schema.TrackEvent
        assert kinds[T.TYPE_SLICE_BEGIN] == kinds[T.TYPE_SLICE_END] > 0 and kinds[T.TYPE_COUNTER] > 0, kinds
        named = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField('track_descriptor')}
        assert any(d.counter.unit == schema.CounterDescriptor.UNIT_SIZE_BYTES for d in named.values())
        theirs = [p.track_event.double_counter_value for p in trace.packet
                  if p.HasField('track_event') and p.track_event.type == T.TYPE_COUNTER
                  and named[p.track_event.track_uuid].name == 'gradient line/a']
        assert len(theirs) == len(mine) and all(abs(a - b) <= 1e-8 * b for a, b in zip(theirs, mine)), theirs
        trace.DiscardUnknownFields()
        assert trace.ByteSize() == len(data), 'something in it that the schema does not know'
        claim(f"Perfetto's own classes read {len(trace.packet)} packets, and know each field of them")
    print(f'1..{n_claims}')
