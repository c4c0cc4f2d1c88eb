"""Record a function of tensors as a list of bare operator calls, shortened without changing a bit of the result."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from nervex.graph.program import Call, Program, Ref, TraceError, with_values
from nervex.graph.record import record

__all__ = ['Call', 'Program', 'Ref', 'TraceError', 'alive', 'last_uses', 'same_rounding', 'trace', 'with_values']

_PROBES = 4  # sets of random numbers on which two forms of an operator must agree
_CACHE_LINE = 64
_FILLED = {'ones_like', 'zeros_like', 'full_like', 'new_zeros', 'new_ones', 'new_full'}  # use only an argument's shape


def same_rounding(first: Callable, second: Callable, arguments: Any) -> bool:
    """
    Overview:
        Whether two forms of an operator give the same bits. They are tried on fixed random numbers in the layout of
        ``arguments``, never on the numbers themselves: the program would else depend on the batch that it was
        recorded with, and a resumed run, which records later, would round differently.
    Arguments:
        - first, second (:obj:`Callable`): take what ``arguments`` is
    """
    for seed in range(_PROBES):
        numbers = pytree.tree_map(functools.partial(_random_like, seed=seed), arguments)
        if not _same_bits(first(numbers), second(numbers)):
            return False
    return True


def _random_like(x: Any, seed: int) -> Any:
    """Random numbers with shape, strides and alignment of a tensor of floats; anything else as it is."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    offset = x.data_ptr() % _CACHE_LINE // x.element_size()
    length = offset + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride())) + 1
    generator = torch.Generator(x.device).manual_seed(seed)
    numbers = torch.randn(max(length, 0), generator=generator, dtype=x.dtype, device=x.device)
    return numbers.as_strided(x.shape, x.stride(), offset) if x.numel() else torch.empty_like(x)


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two results are equal in shape, dtype and every number."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(0.1), b.nan_to_num(0.1))


def trace(function: Callable[..., Sequence[torch.Tensor]], inputs: Sequence[torch.Tensor]) -> Program:
    """
    Overview:
        Run ``function(*inputs)`` and record every operator call inside, backward passes included. Parameters and other
        tensors that are not inputs become constants that share memory with the originals, so that updates in place are
        seen. Python numbers are recorded as they are now. The function runs twice in effect: the caller takes care of
        random states and buffers.
    """
    try:
        program = record(function, inputs)
        _refuse_what_depends_on_data(program)
        with torch.no_grad():
            values = program.run(inputs)
            _refuse_masks(program, values)
            return _shorten(program, values)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, AssertionError) as e:
        text = str(e).strip()
        raise TraceError(f'{text.splitlines()[0] if text else "no message"} ({type(e).__name__})') from e


def _refuse_what_depends_on_data(program: Program) -> None:
    for call in program.calls:
        tags = getattr(call.target, 'tags', ())
        by_data = torch.Tag.dynamic_output_shape in tags and call.name not in ('index', 'index_put', 'index_put_')
        if by_data or torch.Tag.data_dependent_output in tags:
            raise TraceError(f"the shape or the course of '{call.name}' depends on the data")


def _refuse_masks(program: Program, values: dict[int, Any]) -> None:
    for call in program.calls:
        masks = [values[id(r)] for r in call.refs()[1:]] if call.name == 'index' else []
        if any(m.dtype in (torch.bool, torch.uint8) for m in masks):
            raise TraceError('it selects by a mask, so that shapes depend on the data; use torch.where')


def _shorten(program: Program, values: dict[int, Any]) -> Program:
    """
    Overview:
        Leave out detach, double transposes, pow by one, repeated views and dead calls. What depends on constants or
        shapes alone is computed now: views of the weights, seeds of the backward pass.
    """
    written = _written(program)
    stands_for: dict[int, Ref] = {}
    made: dict[int, Call] = {}
    views: dict[tuple, Ref] = {}
    kept: list[Call] = []

    def current(item: Any) -> Any:
        return stands_for.get(id(item), item) if isinstance(item, Ref) else item

    for old in program.calls:
        args, kwargs = pytree.tree_map(current, (old.args, old.kwargs))
        call = Call(old.target, args, kwargs, old.result)
        same = _equal_to(call, made, written, values, old)
        signature = _signature(call) if call.is_view else None
        if same is None and signature is not None:
            same = views.get(signature)
        if same is None and isinstance(values[id(old.result)], torch.Tensor):
            same = _as_constant(call, values[id(old.result)], written)
        if same is None:
            made[id(call.result)] = call
            kept.append(call)
        else:
            stands_for[id(old.result)] = same
        if signature is not None:
            views.setdefault(signature, same or call.result)
    outputs = [current(o) for o in program.outputs]
    return Program(program.inputs, alive(kept, outputs), outputs, program.generators)


def _equal_to(call: Call, made: dict[int, Call], written: set[int], values: dict[int, Any], old: Call) -> Ref | None:
    """An existing value that equals the call's result in every bit, if there is one."""
    first = call.args[0] if call.args else None
    if not isinstance(first, Ref):
        return None
    if call.is_view and _same_view(values[id(old.args[0])], values[id(old.result)]):
        return first
    if call.name == 'pow' and tuple(call.args[1:]) == (1.0,) and not {id(first), id(call.result)} & written:
        return first
    inner = made.get(id(first))
    if call.name == 't' and inner is not None and inner.name == 't':
        return inner.args[0]
    return None


def _same_view(a: Any, b: Any) -> bool:
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype


def _as_constant(call: Call, value: torch.Tensor, written: set[int]) -> Ref | None:
    if call.mutates or call.is_random:
        return None
    refs = call.refs()
    if call.is_view:
        constant = bool(refs) and all(r.tensor is not None for r in refs)
        return Ref(value, all(r.fixed for r in refs)) if constant else None
    if id(call.result) in written:
        return None
    return Ref(value, True) if call.name in _FILLED or all(r.fixed for r in refs) else None


def _signature(call: Call) -> tuple:
    leaves, spec = pytree.tree_flatten((call.args, call.kwargs))
    return call.target, str(spec), tuple(('ref', id(x)) if isinstance(x, Ref) else (type(x), x) for x in leaves)


def _written(program: Program) -> set[int]:
    """Ids of all values in whose memory some call writes, views included."""
    root: dict[int, int] = {}
    hit: set[int] = set()
    for call in program.calls:
        targets = call.written() or (call.refs()[:1] if call.is_view else [])
        if targets:
            root[id(call.result)] = root.get(id(targets[0]), id(targets[0]))
        hit.update(root.get(id(r), id(r)) for r in call.written())
    return hit | {value for value, origin in root.items() if origin in hit}


def alive(calls: list[Call], outputs: list[Ref]) -> list[Call]:
    """The calls that outputs, memory or random states depend on."""
    needed = {id(o) for o in outputs}
    kept = []
    for call in reversed(calls):
        if id(call.result) in needed or call.mutates or call.is_random:
            needed.update(id(r) for r in call.refs())
            kept.append(call)
    return kept[::-1]


def last_uses(program: Program) -> dict[int, list[Ref]]:
    """Position of a call -> results that nobody needs after it."""
    last: dict[int, tuple[int, Ref]] = {}
    for i, call in enumerate(program.calls):
        for ref in [call.result, *call.refs()]:
            if ref.tensor is None:
                last[id(ref)] = (i, ref)
    stay = {id(r) for r in [*program.outputs, *program.inputs]}
    uses: dict[int, list[Ref]] = {}
    for key, (i, ref) in last.items():
        if key not in stay:
            uses.setdefault(i, []).append(ref)
    return uses
