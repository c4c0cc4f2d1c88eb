"""Roles that only pretend, for tests of those who deal with them."""

import numpy as np

from nervex.parallel.blocks import Header, Ledger
from nervex.worker.actor.base_serial_evaluator import Evaluation


class Pretender:
    """A role without envs and networks."""

    all = []

    def __init__(self, spec):
        self.spec, self.events, self.closed = spec, None, False
        Pretender.all.append(self)

    def begin(self):
        return {'pid': 1, **self.ping()}

    def ping(self):
        return {'progress': 0, 'events': [], 'told': []}

    def close(self):
        self.closed = True


class Actor(Pretender):
    repeats = ()  # sequence numbers that are sent twice

    def __init__(self, spec):
        super().__init__(spec)
        self.seq, self.seen = 0, []

    def collect(self, task, request, weights):
        self.seen.append((task['task_id'], request['version'], weights))
        spec, rows = self.spec, request['rows']
        header = Header(spec.index, spec.incarnation, self.seq, task['task_id'], request['version'],
                        request['train_iter'], rows, rows, 0.01, 10, [1.0])  # fmt: skip
        if self.seq not in self.repeats or getattr(self, 'again', False):
            self.seq, self.again = self.seq + 1, False
        else:
            self.again = True
        return header, {'obs': np.arange(rows)}


class Learner(Pretender):
    def __init__(self, spec):
        super().__init__(spec)
        self.iter, self.keys, self.inserted, self.ledger = spec.resume_iter or 0, [], 0, Ledger()

    def begin(self):
        return {'train_iter': self.iter, 'inserted': 0, 'sampled': 0, 'count': 0, 'notes': None,
                'last_checkpoint': None, **super().begin()}  # fmt: skip

    def learn(self, headers, request, *blocks):
        assert [len(block['obs']) for block in blocks] == [header.rows for header in headers]
        updates = 2 if request['updates'] is None else request['updates']
        fresh = [header for header in headers if self.ledger.take(*header.key)]
        refused = len(headers) - len(fresh)
        self.keys += [header.key for header in fresh]
        self.inserted += sum(header.rows for header in fresh)
        staleness = [self.iter - header.train_iter for header in headers]
        self.iter += updates
        info = dict(train_iter=self.iter, updates=updates, inserted=self.inserted, sampled=self.iter * 32, count=99,
                    learn_seconds=0.001 * updates,
                    refused=refused, stale=0, staleness=staleness, published=True,
                    saved={'train_iter': self.iter, 'seconds': 0.0} if request['notes'] else None)  # fmt: skip
        return info, {'version of update': self.iter}

    def snapshot(self):
        return {'train_iter': self.iter}, {'version of update': self.iter}

    def keep(self, train_iter):
        return {'last_checkpoint': f'iteration_{train_iter}'}

    def finish(self, notes):
        return self.begin()


class Evaluator(Pretender):
    good_after = 40  # updates

    def evaluate(self, task, request, weights):
        assert weights == {'version of update': request['train_iter']}
        good = request['train_iter'] >= self.good_after
        result = Evaluation(np.array([200.0 if good else 10.0]), np.array([10]), 0.1)
        return {'reached': good, 'result': result, **request}


def go(run, until, steps=2000):
    for _ in range(steps):
        if until() or not run.going_on():
            return
        run.coordinator.step(0.1)
    raise AssertionError('it did not come to that')


def log_of(run):
    with open(run.log.path, encoding='utf-8') as f:
        return f.read()


def roles(cls):
    return [role for role in Pretender.all if isinstance(role, cls)]
