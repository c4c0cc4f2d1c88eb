"""Straight Python source made a function: what runs at every call and must not loop."""

from collections.abc import Sequence
from typing import Any


class Source:
    """
    Overview:
        Lines of Python source, made a function by ``exec``: a loop over the operators of a network costs 0.3 us each,
        which is half of what acting for one env takes (row 'act, 1 env' of benchmark/train_bench.py).
    Arguments:
        - inputs (:obj:`Sequence`): objects that the function is given at each call, by identity
    Interfaces:
        name, constant, line, finish
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._scope: dict[str, Any] = {}
        self._inputs = [f'x{i}' for i in range(len(inputs))]
        self._names = {id(item): name for item, name in zip(inputs, self._inputs)}
        self._lines: list[str] = []

    def name(self, value: Any) -> str:
        """Name of an input."""
        return self._names[id(value)]

    def constant(self, value: Any) -> str:
        """Name of a global that holds any object."""
        if id(value) not in self._names:
            self._names[id(value)] = f'c{len(self._names)}'
            self._scope[self._names[id(value)]] = value  # which also keeps it, so that its id stays its own
        return self._names[id(value)]

    def line(self, text: str) -> None:
        """One more line."""
        self._lines.append(text)

    def finish(self, result: str, title: str) -> Any:
        """The function, with the text of its result; ``run.source`` is its text."""
        lines = ''.join(f'    {line}\n' for line in [*self._lines, f'return {result}'])
        source = f'def run({", ".join(self._inputs)}):\n{lines}'
        exec(compile(source, title, 'exec'), self._scope)
        run = self._scope['run']
        run.source = source
        return run
