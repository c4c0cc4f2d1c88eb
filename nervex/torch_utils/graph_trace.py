"""Record a function of tensors as a list of bare operator calls, shortened without changing a bit of the result."""
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

_PROBES = 4  # sets of random numbers on which two forms of an operator must agree
_CACHE_LINE = 64
_FILLED = {'ones_like', 'zeros_like', 'full_like', 'new_zeros', 'new_ones', 'new_full'}  # use only an argument's shape


class TraceError(Exception):
    """The function cannot be recorded; the text says why, for the line that is logged before going on in eager mode."""


class Ref:
    """
    Overview:
        A value of the program: an input, a constant tensor or the result of a call. Compared by identity.
    """

    __slots__ = ('fixed', 'tensor')

    def __init__(self, tensor: Any = None, fixed: bool = False) -> None:
        self.tensor = tensor  # the constant; None for inputs and results
        self.fixed = fixed  # a constant whose numbers never change, unlike those of a weight


@dataclass
class Call:
    """One operator call; ``args`` and ``kwargs`` hold Refs where the program's values go."""

    target: Any  # an OpOverload, or operator.getitem
    args: tuple
    kwargs: dict
    result: Ref

    def __post_init__(self) -> None:
        schema = getattr(self.target, '_schema', None)
        self.name = schema.name.split('::')[-1] if schema else 'getitem'
        self.mutates = bool(schema and schema.is_mutable)  # writes into one of its arguments
        self.is_view = not self.mutates and (schema is None or any(r.alias_info is not None for r in schema.returns))
        self.is_random = bool(schema and torch.Tag.nondeterministic_seeded in self.target.tags)

    def refs(self) -> list[Ref]:
        """The values it takes."""
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Ref)]

    def written(self) -> list[Ref]:
        """The values it writes into."""
        if not self.mutates:
            return []
        given = {a.name: v for a, v in zip(self.target._schema.arguments, self.args)} | self.kwargs
        names = [a.name for a in self.target._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        return [r for n in names for r in pytree.tree_leaves(given.get(n)) if isinstance(r, Ref)]


@dataclass
class Program:
    """Inputs, operator calls in order, outputs."""

    inputs: list[Ref]
    calls: list[Call]
    outputs: list[Ref]
    generators: list[torch.Generator] = field(default_factory=list)

    @property
    def constants(self) -> list[Ref]:
        """Constant tensors that calls or outputs use, in order of use."""
        used = [ref for call in self.calls for ref in call.refs()] + self.outputs
        return list({id(ref): ref for ref in used if ref.tensor is not None}.values())

    def run(self, inputs: Sequence[torch.Tensor]) -> dict[int, Any]:
        """Execute call by call; returns the value of every Ref by its id."""
        values: dict[int, Any] = {id(ref): ref.tensor for ref in self.constants}
        values.update({id(ref): x for ref, x in zip(self.inputs, inputs)})
        for call in self.calls:
            args, kwargs = with_values((call.args, call.kwargs), values)
            values[id(call.result)] = call.target(*args, **kwargs)
        return values


def with_values(structure: Any, values: dict[int, Any]) -> Any:
    """Arguments with every Ref replaced by its constant or its value."""
    def value(x: Any) -> Any:
        if not isinstance(x, Ref):
            return x
        return values[id(x)] if x.tensor is None else x.tensor

    return pytree.tree_map(value, structure)


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
    from torch.fx.experimental.proxy_tensor import make_fx  # 0.7 s: only where something is traced
    try:
        program = _convert(make_fx(function)(*inputs))
        _refuse_what_depends_on_data(program)
        with torch.no_grad():
            values = program.run(inputs)
            _refuse_masks(program, values)
            return _shorten(program, values)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError, AssertionError) as e:
        text = str(e).strip()
        if '_local_scalar_dense' in text:
            text = "a tensor becomes a Python number in it ('if' on a tensor, .item(), float(...))"
        raise TraceError(f'{text.splitlines()[0] if text else "no message"} ({type(e).__name__})') from e


def _convert(module: torch.fx.GraphModule) -> Program:
    refs: dict[torch.fx.Node, Any] = {}
    program = Program([], [], [])
    shared: dict[int, Ref] = {}
    for node in module.graph.nodes:
        if node.op == 'placeholder':
            refs[node] = Ref()
            program.inputs.append(refs[node])
        elif node.op == 'get_attr':
            constant = getattr(module, node.target)
            if isinstance(constant, torch.Tensor):
                refs[node] = shared.setdefault(id(constant), Ref(constant.detach()))
            elif isinstance(constant, torch.Generator):
                refs[node] = constant
            else:
                raise TraceError(f'it uses a {type(constant).__name__}, which cannot be recorded')
        elif node.op == 'call_function':
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), refs.__getitem__)
            refs[node] = Ref()
            program.calls.append(Call(node.target, tuple(args), dict(kwargs), refs[node]))
        elif node.op == 'output':
            program.outputs = list(torch.fx.node.map_arg(node.args[0], refs.__getitem__))
    if not all(isinstance(o, Ref) for o in program.outputs):
        raise TraceError('one of its results is not a tensor')
    leaves = [leaf for call in program.calls for leaf in pytree.tree_leaves((call.args, call.kwargs))]
    program.generators = list({id(g): g for g in leaves if isinstance(g, torch.Generator)}.values())
    return program


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
    if call.name == 'pow' and tuple(call.args[1:]) == (1., ) and not {id(first), id(call.result)} & written:
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
