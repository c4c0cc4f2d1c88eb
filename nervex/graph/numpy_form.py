"""Back end 'numpy' for acting: a forward pass over a few rows as NumPy calls on the same weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nervex.graph.trace import Call, Program, Ref, TraceError, last_uses

_INPLACE = {'relu', 'tanh', 'exp', 'neg', 'abs', 'add', 'sub', 'mul', 'div'}
_UFUNC = {'tanh': np.tanh, 'exp': np.exp, 'neg': np.negative, 'abs': np.abs, 'sqrt': np.sqrt, 'log': np.log}
_BINARY = {
    'add': np.add,
    'sub': np.subtract,
    'mul': np.multiply,
    'div': np.divide,
    'maximum': np.maximum,
    'minimum': np.minimum,
}
_RESHAPE = {'view', '_unsafe_view', 'reshape', 'unsqueeze', 'squeeze', 'flatten'}


def compile_numpy(program: Program, inputs: Sequence[torch.Tensor]) -> Callable[..., tuple]:
    """
    Overview:
        A function of arrays that returns a tuple of arrays. Weights are views of the tensors' memory and so always
        current. Only operators of a white list are known; any other raises TraceError with its name.
    """
    if any(ref.tensor.device.type != 'cpu' for ref in program.constants) or any(x.device.type != 'cpu' for x in inputs):
        raise TraceError('NumPy works on the CPU only')
    with torch.no_grad():
        writer = _Writer(program, program.run(inputs))
        for position, call in enumerate(program.calls):
            writer.call(position, call)
    run = writer.finish()
    results, expected = run(*[x.numpy() for x in inputs]), [writer.values[id(o)] for o in program.outputs]
    for found, wanted in zip(results, expected):
        if found.shape != tuple(wanted.shape) or found.dtype != wanted.numpy().dtype:
            raise TraceError(f'NumPy gives {found.dtype} {found.shape}, torch {wanted.dtype} {tuple(wanted.shape)}')
    return run


class _Writer:
    def __init__(self, program: Program, values: dict[int, Any]) -> None:
        self.program, self.values = program, values
        self._names = {id(ref): f'x{i}' for i, ref in enumerate(program.inputs)}
        self._scope: dict[str, Any] = {}
        self._lines: list[str] = []
        self._owned: set[int] = set()  # results whose memory nobody else sees
        self._last = last_uses(program)
        self._position = 0

    def call(self, position: int, call: Call) -> None:
        """One operator as one line of source."""
        self._position = position
        method = getattr(self, f'_{call.name.strip("_")}', None)
        if call.name in _RESHAPE:
            text = self._reshape(call)
        elif call.name in _UFUNC:
            text = self._calls(_UFUNC[call.name], [self._name(call.args[0])], call)
        elif call.name in _BINARY:
            text = self._binary(call)
        elif method is not None:
            text = method(call)
        else:
            raise TraceError(f"there is no NumPy form of '{call.name}'")
        if text is not None:
            self._names[id(call.result)] = f'v{len(self._names)}'
            self._lines.append(f'{self._names[id(call.result)]} = {text}')

    def finish(self) -> Callable[..., tuple]:
        """The function."""
        results = ''.join(f'{self._name(o)}, ' for o in self.program.outputs)
        head = ', '.join(self._names[id(ref)] for ref in self.program.inputs)
        source = f'def run({head}):\n' + ''.join(f'    {line}\n' for line in [*self._lines, f'return ({results})'])
        exec(compile(source, '<numpy acting>', 'exec'), self._scope)
        run = self._scope['run']
        run.source = source
        return run

    def _name(self, item: Any) -> str:
        """Source text of an argument; numbers become 0-dim arrays, which ufuncs take faster."""
        if isinstance(item, Ref):
            if item.tensor is not None:
                return self._constant(item.tensor.numpy())
            return self._names[id(item)]
        return repr(item)

    def _constant(self, value: Any) -> str:
        for name, known in self._scope.items():
            if known is value:
                return name
        name = f'c{len(self._scope)}'
        self._scope[name] = value
        return name

    def _calls(self, function: Any, arguments: list[str], call: Call, fresh: bool = True) -> str:
        """A function call, in the memory of an argument that nobody needs any more where there is one."""
        out = self._reusable(call) if call.name in _INPLACE else None
        if fresh:
            self._owned.add(id(call.result))
        return f'{self._constant(function)}({", ".join(arguments)}{f", out={out}" if out else ""})'

    def _reusable(self, call: Call) -> str | None:
        result = self.values[id(call.result)]
        gone = {id(r) for r in self._last.get(self._position, [])}
        for ref in call.refs():
            value = self.values.get(id(ref))
            free = id(ref) in gone and id(ref) in self._owned
            if free and value.shape == result.shape and value.dtype == result.dtype:
                return self._names[id(ref)]
        return None

    def _number(self, number: Any, like: torch.Tensor) -> str:
        if isinstance(number, Ref):
            return self._name(number)
        return self._constant(np.array(number, dtype=like.numpy().dtype))

    def _binary(self, call: Call) -> str:
        if call.kwargs or len(call.args) != 2:
            raise TraceError(f"there is no NumPy form of '{call.name}' with {call.kwargs or call.args[2:]}")
        result = self.values[id(call.result)]
        if not result.is_floating_point() and call.name == 'div':
            raise TraceError("there is no NumPy form of 'div' for integers")
        return self._calls(_BINARY[call.name], [self._number(a, result) for a in call.args], call)

    def _reshape(self, call: Call) -> str:
        shape = tuple(self.values[id(call.result)].shape)
        self._owned.discard(id(call.args[0]))
        return f'{self._name(call.args[0])}.reshape({shape})'

    def _expand(self, call: Call) -> str:
        shape = tuple(self.values[id(call.result)].shape)
        self._owned.add(id(call.result))  # a copy: NumPy's own result must not be written to
        return f'{self._constant(np.broadcast_to)}({self._name(call.args[0])}, {shape}).copy()'

    def _t(self, call: Call) -> str:
        self._owned.discard(id(call.args[0]))
        return f'{self._name(call.args[0])}.T'

    def _transpose(self, call: Call) -> str:
        self._owned.discard(id(call.args[0]))
        return f'{self._name(call.args[0])}.swapaxes({call.args[1]}, {call.args[2]})'

    def _permute(self, call: Call) -> str:
        self._owned.discard(id(call.args[0]))
        return f'{self._name(call.args[0])}.transpose({tuple(call.args[1])})'

    def _addmm(self, call: Call) -> str:
        if call.kwargs:
            raise TraceError("there is no NumPy form of 'addmm' with alpha or beta")
        bias, a, b = (self._name(x) for x in call.args)
        product = f'p{self._position}'
        self._lines.append(f'{product} = {self._constant(np.dot)}({a}, {b})')
        self._owned.add(id(call.result))
        return f'{self._constant(np.add)}({product}, {bias}, {product})'

    def _mm(self, call: Call) -> str:
        return self._calls(np.dot, [self._name(x) for x in call.args], call)

    def _bmm(self, call: Call) -> str:
        return self._calls(np.matmul, [self._name(x) for x in call.args], call)

    def _relu(self, call: Call) -> str:
        zero = self._number(0, self.values[id(call.result)])
        return self._calls(np.maximum, [self._name(call.args[0]), zero], call)

    def _sigmoid(self, call: Call) -> str:
        like = self.values[id(call.result)]
        half, one, tanh = self._number(0.5, like), self._number(1.0, like), self._constant(np.tanh)
        self._owned.add(id(call.result))
        return f'{half} * ({tanh}({half} * {self._name(call.args[0])}) + {one})'

    def _clamp(self, call: Call) -> str:
        low, high = (list(call.args[1:]) + [None, None])[:2]
        low, high = call.kwargs.get('min', low), call.kwargs.get('max', high)
        result = self.values[id(call.result)]
        text = self._name(call.args[0])
        if low is not None:
            text = f'{self._constant(np.maximum)}({text}, {self._number(low, result)})'
        if high is not None:
            text = f'{self._constant(np.minimum)}({text}, {self._number(high, result)})'
        self._owned.add(id(call.result))
        return text

    def _rsub(self, call: Call) -> str:
        first = self._number(call.args[1], self.values[id(call.result)])
        return self._calls(np.subtract, [first, self._name(call.args[0])], call)

    def _mean(self, call: Call) -> str:
        axes = call.args[1] if len(call.args) > 1 else None
        source = self.values[id(call.args[0])]
        if axes is None or call.kwargs or not source.is_floating_point():
            raise TraceError("there is no NumPy form of this 'mean'")
        count = int(np.prod([source.shape[a] for a in axes]))
        self._owned.add(id(call.result))
        return f'{self._reduced(call)} / {self._number(count, source)}'

    def _sum(self, call: Call) -> str:
        if len(call.args) < 2 or call.kwargs or not self.values[id(call.args[0])].is_floating_point():
            raise TraceError("there is no NumPy form of this 'sum'")
        self._owned.add(id(call.result))
        return self._reduced(call)

    def _reduced(self, call: Call) -> str:
        keep = bool(call.args[2]) if len(call.args) > 2 else False
        return f'{self._constant(np.add.reduce)}({self._name(call.args[0])}, {tuple(call.args[1])}, None, None, {keep})'

    def _argmax(self, call: Call) -> str:
        if len(call.args) < 2 or call.args[1] is None:
            raise TraceError("there is no NumPy form of 'argmax' over all elements")
        keep = bool(call.args[2]) if len(call.args) > 2 else False
        return f'{self._name(call.args[0])}.argmax({call.args[1]}, keepdims={keep})'

    def _softmax(self, call: Call) -> str:
        x, axis = self._name(call.args[0]), call.args[1]
        self._owned.add(id(call.result))
        self._scope['softmax'] = _softmax
        return f'softmax({x}, {axis})'

    def _log_softmax(self, call: Call) -> str:
        self._owned.add(id(call.result))
        self._scope['log_softmax'] = _log_softmax
        return f'log_softmax({self._name(call.args[0])}, {call.args[1]})'

    def _cat(self, call: Call) -> str:
        parts = ', '.join(self._name(p) for p in call.args[0])
        self._owned.add(id(call.result))
        return f'{self._constant(np.concatenate)}(({parts},), {call.args[1] if len(call.args) > 1 else 0})'

    def _select(self, call: Call) -> str:
        self._owned.discard(id(call.args[0]))
        index = [':'] * self.values[id(call.args[0])].dim()
        index[call.args[1]] = str(call.args[2])
        return f'{self._name(call.args[0])}[{", ".join(index)}]'

    def _slice(self, call: Call) -> str:
        source, dim, start, end, step = (list(call.args) + [0, None, None, 1][len(call.args) - 1 :])[:5]
        self._owned.discard(id(source))
        index = [':'] * self.values[id(source)].dim()
        index[dim] = f'{start or 0}:{end}:{step}' if end is not None else f'{start or 0}::{step}'
        return f'{self._name(source)}[{", ".join(index)}]'

    def _split(self, call: Call) -> None:
        self._owned.discard(id(call.args[0]))

    _split_with_sizes = _chunk = _split

    def _getitem(self, call: Call) -> str:
        """A part of a split: a slice at a fixed place."""
        origin = next((c for c in self.program.calls if c.result is call.args[0]), None)
        if origin is None or origin.name not in ('split', 'split_with_sizes', 'chunk'):
            raise TraceError(f"there is no NumPy form of '{origin.name if origin else 'getitem'}'")
        parts, dim = self.values[id(origin.result)], origin.args[2] if len(origin.args) > 2 else 0
        begin = sum(p.shape[dim] for p in parts[: call.args[1]])
        index = [':'] * parts[0].dim()
        index[dim] = f'{begin}:{begin + parts[call.args[1]].shape[dim]}'
        return f'{self._name(origin.args[0])}[{", ".join(index)}]'

    def _clone(self, call: Call) -> str:
        self._owned.add(id(call.result))
        return f'{self._name(call.args[0])}.copy()'

    def _to_copy(self, call: Call) -> str:
        if set(call.kwargs) - {'dtype', 'layout', 'device', 'pin_memory', 'memory_format', 'non_blocking'}:
            raise TraceError("there is no NumPy form of this '_to_copy'")
        self._owned.add(id(call.result))
        dtype = self._constant(self.values[id(call.result)].numpy().dtype)
        return f'{self._name(call.args[0])}.astype({dtype})'


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    e /= e.sum(axis, keepdims=True)
    return e


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
