"""What Ray itself does on the jobs of ``parallel_bench.py``: a bound, not a product."""

import time

import numpy as np
import parallel_jobs as jobs
import ray


def _start():
    ray.init(**jobs.RAY)


@ray.remote(num_cpus=1)
class Sleeper:
    """Steps an env that sleeps, a block of 50 a call."""

    def block(self):
        for _ in range(50):
            time.sleep(jobs.SLEEP_S)
        return 50


def sleep(seed, actors):
    _start()
    sleepers = [Sleeper.remote() for _ in range(actors)]
    ray.get([one.__ray_ready__.remote() for one in sleepers])
    under_way = {one.block.remote(): one for one in sleepers for _ in range(2)}
    rate, steps = jobs.Rate(), 0
    while rate.seconds() < jobs.SLEEP_SECONDS:
        done = ray.wait(list(under_way))[0][0]
        steps += ray.get(done)
        one = under_way.pop(done)
        under_way[one.block.remote()] = one
    return rate.record(steps)


@ray.remote(num_cpus=1)
class Camera:
    """Answers blocks of frames; 4 envs of one frame a step."""

    def __init__(self):
        self._frames = np.random.default_rng(0).integers(0, 255, (jobs.FRAME_BLOCK, *jobs.FRAMES), np.uint8)

    def block(self):
        return {'obs': self._frames, 'action': np.zeros(jobs.FRAME_BLOCK), 'reward': np.zeros(jobs.FRAME_BLOCK)}


def images(seed):
    """Blocks from two actors into a ring of the driver, with two calls under way each."""
    _start()
    cameras = [Camera.remote() for _ in range(2)]
    ray.get([one.__ray_ready__.remote() for one in cameras])
    ring = np.zeros((jobs.FRAME_BLOCK * 20, *jobs.FRAMES), np.uint8)
    under_way = {one.block.remote(): one for one in cameras for _ in range(2)}
    rate, done_blocks = None, 0
    while rate is None or rate.seconds() < jobs.FRAME_SECONDS:
        done = ray.wait(list(under_way))[0][0]
        at = done_blocks % 20 * jobs.FRAME_BLOCK
        ring[at : at + jobs.FRAME_BLOCK] = ray.get(done)['obs']
        one = under_way.pop(done)
        under_way[one.block.remote()] = one
        done_blocks += 1
        if done_blocks == 20 and rate is None:  # the ring's pages are mapped now
            rate, done_blocks = jobs.Rate(), 0
    return rate.record(done_blocks * jobs.FRAME_BLOCK * np.prod(jobs.FRAMES) / 1e6)


@ray.remote(num_cpus=1)
class Taker:
    """Copies weights in place."""

    def __init__(self, shapes):
        self._params = [np.zeros(shape, np.float32) for shape in shapes]

    def take(self, weights):
        for mine, new in zip(self._params, weights.values()):
            np.copyto(mine, new)


def weights(seed):
    _start()
    width = int((jobs.WEIGHTS_MB * 1e6 / 4 / 2) ** 0.5)
    model = {str(i): np.random.default_rng(i).standard_normal((width, width), np.float32) for i in range(2)}
    takers = [Taker.remote([x.shape for x in model.values()]) for _ in range(jobs.WEIGHTS_ACTORS)]
    ray.get([one.__ray_ready__.remote() for one in takers])
    seconds = []
    for _ in range(jobs.WEIGHTS_REPEATS):
        start = time.perf_counter()
        reference = ray.put({name: value.copy() for name, value in model.items()})
        ray.get([one.take.remote(reference) for one in takers])
        seconds.append(time.perf_counter() - start)
    return dict(ms=1e3 * float(np.median(seconds[3:])), size_mb=sum(x.nbytes for x in model.values()) / 1e6)


CASES = {
    'images': images,
    'weights': weights,
    **{f'sleep{n}': (lambda seed, n=n: sleep(seed, n)) for n in jobs.SLEEP_ACTORS},
}
