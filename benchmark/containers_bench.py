"""
Containers of eight float32 columns of 256 x 4: wrap them, gather 256 rows, stack 64 rows, split into 8, read one.

    python benchmark/containers_bench.py
"""

from containers_jobs import CASES
from harness import Bench, Implementation, run

BENCH = Bench(
    name='containers',
    unit='operations per second',
    implementations=[
        Implementation('nervex.Batch', 'containers_jobs:nervex_batch', {'nervex': '-e .'}),
        Implementation('dict of arrays', 'containers_jobs:dict_of_arrays'),
        Implementation('dict of tensors', 'containers_jobs:dict_of_tensors'),
        Implementation('tianshou.Batch', 'containers_jobs:tianshou_batch', {'tianshou': 'tianshou==2.0.1'}),
        Implementation('TensorDict', 'containers_jobs:tensordict', {'tensordict': 'tensordict==0.14.3'}),
    ],
    cases=CASES,
    reference='dict of tensors',
    notes='`create8` starts from a dict of arrays (for a dict of tensors: converts them); `get` is '
    '`container["name"]`, `attribute` is `container.name`.',
)

if __name__ == '__main__':
    run(BENCH)
