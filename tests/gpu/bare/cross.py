#!/usr/bin/env python3
"""PyTorch on the same numbers: values of layers (bare-torch's folder), and times of the same work.

    cross.py values FOLDER
    cross.py times [--small]        rows of bare-times
    cross.py convs RESULT [--small] rows of bare-convs that are in the result already
    cross.py trainings [--small]    models of bare-trainings
    cross.py models [NET] [--small] those of bare-models

prints one JSON object per case or row.  77 where python3 has no PyTorch that sees a GPU, unless
--cpu says that the CPU will do.
SPDX-License-Identifier: MIT"""
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True

try:
    import torch
    import torch.nn.functional as F
    import cross_models
except ImportError:
    print('no PyTorch here')
    sys.exit(77)
DEVICE = 'cpu' if '--cpu' in sys.argv else 'cuda'
SMALL = '--small' in sys.argv
if DEVICE == 'cuda' and not torch.cuda.is_available():
    print('PyTorch sees no GPU')
    sys.exit(77)
TOLERANCE = 1e-4  # of float32, relative to the largest element
tf32 = cross_models.tf32


def emit(**row):
    print(json.dumps(row), flush=True)


# --- values ---

def adam(a):
    w = a['x'].clone().requires_grad_()
    opt = torch.optim.Adam([w], lr=0.01)
    for _ in range(5):
        opt.zero_grad()
        (0.5 * (w * w).sum()).backward()
        opt.step()
    return w.detach()


def attention(a):
    """Spelt out: what the score matrix is, not which kernel computes it."""
    scores = a['q'] @ a['k'].transpose(1, 2) / a['q'].shape[2] ** 0.5
    unseen = torch.ones_like(scores).triu(1).bool()
    return torch.softmax(scores.masked_fill(unseen, float('-inf')), 2) @ a['v']


def recurrent(layers):
    """Six steps of four sequences."""
    def run(a):
        states = (a['hx'], a['cx']) if 'cx' in a else a['hx']
        weights = [a['Wx'], a['Wh'], a['bx'], a['bh']]
        y = layers(a['x'].view(6, 4, 10), states, weights, True, 1, 0.0, True, False, False)[0]
        return y.reshape(24, 12)
    return run


CASES = {
    'convolution': lambda a: F.conv2d(a['x'], a['W'], a['b'], stride=2, padding=1),
    'batch_norm': lambda a: F.batch_norm(a['x'], None, None, a['gamma'], a['beta'], True, 0.1, 1e-5),
    'layer_norm': lambda a: F.layer_norm(a['x'], (96,), a['gamma'], a['beta'], 1e-5),
    'attention': attention,
    'product': lambda a: a['a'] @ a['b'],
    'cross_entropy': lambda a: F.cross_entropy(a['x'], a['t']),
    'max_pool': lambda a: F.max_pool2d(a['x'], 2),
    'embedding': lambda a: F.embedding(a['t'], a['W']),
    'gelu': lambda a: F.gelu(a['x']),
    'adam': adam,
    'lstm': recurrent(torch._VF.lstm),
    'gru': recurrent(torch._VF.gru),
}


def arrays(folder):
    cases = {}
    with open(os.path.join(folder, 'index'), encoding='utf-8') as f:
        for line in f:
            o = json.loads(line)
            with open(os.path.join(folder, o['case'] + '.' + o['array']), 'rb') as g:
                data = bytearray(g.read())
            v = torch.frombuffer(data, dtype=getattr(torch, o['dtype'])).reshape(o['shape'])
            cases.setdefault(o['case'], {})[o['array']] = v.clone().to(DEVICE)
    return cases


def difference(got, want):
    return float((got - want).abs().max() / (want.abs().max() + 1e-30))


def values(folder):
    tf32(False)
    failed = 0
    cases = arrays(folder)
    for name, compute in CASES.items():
        a = cases[name]
        for key in a:
            if 'g.' + key in a:
                a[key].requires_grad_()
        y = compute(a)
        worst = difference(a['y'], y.detach())
        if 'slope' in a:
            (y * a['slope']).sum().backward()
            worst = max([worst] + [difference(a[k], a[k[2:]].grad) for k in a if k[:2] == 'g.'])
        failed += not worst <= TOLERANCE
        emit(row='torch.' + name, holds=worst <= TOLERANCE, difference=worst)
    return failed


# --- times ---

def wait():
    if DEVICE == 'cuda':
        torch.cuda.synchronize()


def timed(run, seconds=0.01 if SMALL else 0.2):
    def some(n):
        wait()
        start = time.perf_counter()
        for _ in range(n):
            run()
        wait()
        return (time.perf_counter() - start) / n
    some(3)
    calls = min(2000, int(seconds / 12 / max(some(3), 1e-9)) + 1)
    samples, end = [], time.perf_counter() + seconds
    while len(samples) < 5 or (time.perf_counter() < end and len(samples) < 64):
        samples.append(some(calls))
    return statistics.median(samples) * 1e6


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def leaf(*shape, dtype=torch.float32):
    return randn(*shape, dtype=dtype).requires_grad_()


def backward_of(y, leaves):
    slope = torch.randn_like(y)

    def run():
        for v in leaves:
            v.grad = None
        y.backward(slope, retain_graph=True)
    return run


def optimizer_row(make, sizes):
    ps = [leaf(s) for s in sizes]
    for p in ps:
        p.grad = torch.randn_like(p)
    return make(ps).step


def clipped_row(make, sizes):
    ps = [leaf(s) for s in sizes]
    for p in ps:
        p.grad = torch.randn_like(p)
    opt = make(ps)

    def step():
        torch.nn.utils.clip_grad_norm_(ps, 1.0)
        opt.step()
    return step


def layers(n, dtype):
    """What has rows in both types."""
    logits = leaf(n // 8192, 8192, dtype=dtype)
    t = torch.randint(8192, (n // 8192,), device=DEVICE)
    with torch.no_grad():
        yield 'softmax', lambda: torch.softmax(logits, 1)

    def cross_entropy():
        logits.grad = None
        F.cross_entropy(logits, t).backward()
        logits.grad = None
    yield 'softmax_cross_entropy', cross_entropy
    del logits
    x, g, b = leaf(n // 1024, 1024, dtype=dtype), leaf(1024, dtype=dtype), leaf(1024, dtype=dtype)
    yield 'layer_norm', lambda: F.layer_norm(x, (1024,), g, b)
    yield 'layer_norm_grad', backward_of(F.layer_norm(x, (1024,), g, b), [x, g, b])
    channels, side = (4, 8) if SMALL else (64, 64)
    x = leaf(n // (channels * side * side), channels, side, side, dtype=dtype)
    g, b = leaf(channels), leaf(channels)
    if dtype == torch.float32:
        yield 'nchw_to_nhwc', lambda: x.detach().permute(0, 2, 3, 1).contiguous()
    yield 'batch_norm', lambda: F.batch_norm(x, None, None, g, b, True)
    yield 'batch_norm_grad', backward_of(F.batch_norm(x, None, None, g, b, True), [x, g, b])
    yield 'max_pool', lambda: F.max_pool2d(x, 2)
    yield 'max_pool_grad', backward_of(F.max_pool2d(x, 2), [x])
    yield 'average_pool', lambda: F.avg_pool2d(x, 2)
    yield 'average_pool_grad', backward_of(F.avg_pool2d(x, 2), [x])
    words = 64 if SMALL else 32768
    w = leaf(words, 1024, dtype=dtype)
    t = torch.randint(words, (n // 1024,), device=DEVICE)
    yield 'embedding', lambda: F.embedding(t, w)
    yield 'embedding_grad', backward_of(F.embedding(t, w), [w])


def rows():
    n = 1 << 13 if SMALL else 64 << 20
    flat, other = randn(n), randn(n)
    wide, row, column = randn(n // 1024, 1024), randn(1024), randn(n // 1024, 1)
    yield 'relu', lambda: torch.relu(flat)
    yield 'exp', lambda: torch.exp(flat)
    yield 'add', lambda: flat + other
    yield 'add_row', lambda: wide + row
    yield 'add_column', lambda: wide + column
    yield 'transpose', lambda: wide.t().contiguous()
    yield 'sum', flat.sum
    yield 'max', flat.max
    yield 'sum_rows', lambda: wide.sum(1)
    yield 'sum_columns', lambda: wide.sum(0)
    yield 'dropout', lambda: F.dropout(flat, 0.5)
    yield 'cast_to_bf16', lambda: flat.to(torch.bfloat16)
    half = flat.to(torch.bfloat16)
    yield 'cast_from_bf16', half.float
    del half, other
    for end, dtype in (('', torch.float32), ('_bf16', torch.bfloat16)):
        yield from ((name + end, run) for name, run in layers(n, dtype))
    if hasattr(F, 'scaled_dot_product_attention'):
        for dtype in ('f32', 'bf16'):
            q, k, v = (randn(*((1, 4, 8, 4) if SMALL else (8, 12, 1024, 64)),
                             dtype=torch.float32 if dtype == 'f32' else torch.bfloat16) for _ in range(3))
            attend = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
            yield 'attention_' + dtype, attend
            for part in (q, k, v):
                part.requires_grad_()
            yield 'attention_grad_' + dtype, backward_of(attend(), [q, k, v])
    sgd = lambda ps: torch.optim.SGD(ps, lr=1e-3, momentum=0.9)
    fast_adam = lambda ps: torch.optim.Adam(ps, fused=DEVICE == 'cuda')
    yield 'momentum_sgd', optimizer_row(sgd, [n // 100] * 100)
    yield 'momentum_sgd_clipped', clipped_row(sgd, [n // 100] * 100)
    yield 'adam', optimizer_row(fast_adam, [n // 100] * 100)
    yield 'adam_160_small', optimizer_row(fast_adam, [64 if SMALL else 1024] * 160)


def recurrent_rows():
    steps, batch, units = (3, 2, 4) if SMALL else (50, 32, 256)
    layer = torch.nn.LSTM(units, units).to(DEVICE)
    x = leaf(steps, batch, units)
    leaves = [x] + list(layer.parameters())
    slope = torch.randn(steps, batch, units, device=DEVICE)

    def run():
        with torch.no_grad():
            layer(x)

    def there_and_back():
        for v in leaves:
            v.grad = None
        layer(x)[0].backward(slope)
    for name in ('lstm_50', 'lstm_composed_50'):
        yield name, run
    for name in ('lstm_grad_50', 'lstm_grad_composed_50'):
        yield name, there_and_back




def products():
    for name, m, k, n, dtype in (
            ('ceiling.gemm_f32', 8192, 8192, 8192, torch.float32),
            ('ceiling.gemm_tf32', 8192, 8192, 8192, torch.float32),
            ('ceiling.gemm_bf16', 8192, 8192, 8192, torch.bfloat16),
            ('gemm_f32_1024', 1024, 1024, 1024, torch.float32),
            ('gemm_f32_4096_1024_4096', 4096, 1024, 4096, torch.float32),
            ('gemm_bf16_1024', 1024, 1024, 1024, torch.bfloat16),
            ('gemm_bf16_4096_1024_4096', 4096, 1024, 4096, torch.bfloat16),
            ('gemm_tf32_1024', 1024, 1024, 1024, torch.float32),
            ('gemm_tf32_4096_1024_4096', 4096, 1024, 4096, torch.float32),
            ('gemm_f32_128', 128, 128, 128, torch.float32),
            ('gemm_f32_64', 64, 64, 64, torch.float32),
            ('gemm_f32_256', 256, 256, 256, torch.float32)):
        if SMALL:
            m = k = n = 16
        tf32('tf32' in name)
        a, b = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype)
        yield name, lambda: a @ b
    tf32(False)


def convolutions(result):
    """The rows of bare-convs, of the sizes that they say."""
    torch.backends.cudnn.benchmark = True
    with open(result, encoding='utf-8') as f:
        table = json.load(f)['rows']
    for name in sorted(n for n, r in table.items() if 'conv' in r):
        batch, c, out, side, k, stride = table[name]['conv']
        kind, way = name.split('.')[1], name.split('.')[3]
        tf32(kind == 'tf32')
        dtype = torch.bfloat16 if kind == 'bf16' else torch.float32
        x = randn(batch, c, side, side, dtype=dtype).to(memory_format=torch.channels_last)
        w = randn(out, c, k, k, dtype=dtype).to(memory_format=torch.channels_last)
        x.requires_grad_(way == 'data')
        w.requires_grad_(way == 'filter')
        forward = lambda: F.conv2d(x, w, padding=k // 2, stride=stride)
        if way == 'forward':
            yield name, forward
        else:
            yield name, backward_of(forward(), [x, w])
    tf32(False)


class Steps(torch.nn.Module):
    """The recurrent network of bare-trainings: 50 steps, 256 units."""
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(65, 64)
        self.cell = torch.nn.LSTMCell(64, 256)
        self.out = torch.nn.Linear(256, 65)

    def forward(self, x, t):
        h = torch.zeros(32, 256, device=DEVICE)
        c, loss = h, 0
        for i in range(50):
            h, c = self.cell(self.emb(x[i]), (h, c))
            loss = loss + F.cross_entropy(self.out(h), t[i])
        return loss / 50


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def lenet():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def trainings():
    sgd = lambda ps: torch.optim.SGD(ps, lr=0.01, momentum=0.9)
    fast_adam = lambda ps: torch.optim.Adam(ps, lr=1e-3, fused=DEVICE == 'cuda')
    labels = lambda n: torch.randint(10, (n,), device=DEVICE)
    for name, model, opt, x, t in (
            ('train.mlp', mlp(784, 1000, 1000, 10), sgd, randn(100, 784), labels(100)),
            ('train.mlp_small', mlp(784, 100, 10), sgd, randn(32, 784), labels(32)),
            ('train.lenet', lenet(), fast_adam, randn(64, 1, 28, 28), labels(64)),
            ('train.lstm', Steps(), fast_adam, torch.randint(65, (50, 32), device=DEVICE),
             torch.randint(65, (50, 32), device=DEVICE))):
        if SMALL and name != 'train.mlp_small':
            continue
        model = model.to(DEVICE)
        o = opt(list(model.parameters()))

        def update():
            o.zero_grad(set_to_none=True)
            loss = model(x, t) if name == 'train.lstm' else F.cross_entropy(model(x), t)
            loss.backward()
            o.step()
        yield name, update


def times(*sources):
    for source in sources:
        for name, run in source:
            try:
                emit(row=name, torch_us=timed(run))
            except RuntimeError as error:
                emit(row=name, error=str(error)[:200])
    return 0


def main():
    emit(row='torch', version=torch.__version__, device=DEVICE)
    what = sys.argv[1]
    rest = [a for before, a in zip(sys.argv[1:], sys.argv[2:]) if a[:2] != '--' and before != '--seconds']
    if what == 'values':
        return values(*rest)
    if what == 'models':
        cross_models.models(rest or ('resnet50', 'gpt2'), SMALL, DEVICE, wait, emit)
        return 0
    if what == 'convs':
        return times(convolutions(*rest))
    return times(rows(), products(), recurrent_rows()) if what == 'times' else times(trainings())


sys.exit(main())
