"""Watch a function run and note every operator call below autograd, backward passes included."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from nervex.graph.program import Call, Program, Ref, TraceError

_READS_DATA = "a tensor becomes a Python number in it ('if' on a tensor, .item(), float(...))"


def record(function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor]) -> Program:
    """
    Overview:
        Run ``function(*inputs)`` once on the real tensors; the calls that it makes are the program. A tensor that is
        neither an input nor the result of a call is a constant of the program and shares its memory.
    """
    recorder = Recorder(inputs)
    with recorder:
        outputs = function(*inputs)
    return recorder.program(outputs)


class Recorder(TorchDispatchMode):
    """
    Overview:
        The calls inside the block. Every tensor seen is kept until the end, so that identities stay unique.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._refs: dict[int, Ref] = {}
        self._kept: list[Any] = []
        self._made: set[int] = set()  # memory of inputs and results
        self._foreign: set[int] = set()  # memory of constants
        self._calls: list[Call] = []
        self._inputs = [self._see(x, Ref()) for x in inputs]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler at the first call, which takes a second."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(function, torch._ops.OpOverload):
            raise TraceError(f"'{function}' is no plain operator")
        if function is torch.ops.aten._local_scalar_dense.default:
            raise TraceError(_READS_DATA)
        given_args, given_kwargs = pytree.tree_map(self._given, (tuple(args), kwargs))
        result = function(*args, **kwargs)
        call = Call(function, given_args, given_kwargs, Ref())
        self._calls.append(call)
        if isinstance(result, torch.Tensor):
            self._see(result, call.result)
        elif isinstance(result, (tuple, list)):
            for i, part in enumerate(result):
                if isinstance(part, torch.Tensor):
                    piece = Ref()
                    self._calls.append(Call(operator.getitem, (call.result, i), {}, piece))
                    self._see(part, piece)
        return result

    def program(self, outputs: Sequence[torch.Tensor]) -> Program:
        """What was recorded, with these results."""
        refs = [self._given(x) for x in outputs]
        if not all(isinstance(ref, Ref) for ref in refs):
            raise TraceError('one of its results is not a tensor')
        leaves = [leaf for call in self._calls for leaf in pytree.tree_leaves((call.args, call.kwargs))]
        generators = list({id(g): g for g in leaves if isinstance(g, torch.Generator)}.values())
        return Program(self._inputs, self._calls, refs, generators)

    def _given(self, item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        ref = self._refs.get(id(item))
        return self._constant(item) if ref is None else ref

    def _constant(self, tensor: torch.Tensor) -> Ref:
        """A tensor from outside. One that lies in the memory of a result came by a way that was not seen."""
        storage = _storage(tensor)
        if storage in self._made:
            raise TraceError('a tensor reaches an operator by a way that cannot be seen')
        self._foreign.add(storage)
        with torch.no_grad():
            ref = Ref(tensor.detach())
        self._refs[id(tensor)] = ref
        self._kept.append(tensor)
        return ref

    def _see(self, tensor: torch.Tensor, ref: Ref) -> Ref:
        self._refs[id(tensor)] = ref
        self._kept.append(tensor)
        storage = _storage(tensor)
        if storage and storage not in self._foreign:  # not a view of a constant
            self._made.add(storage)
        return ref


def _storage(tensor: torch.Tensor) -> int:
    """Address of the memory; 0 where there is none."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
